// Shell: arguments of the commands that people are told to run.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hf {

// One argument of a command line, whatever it contains.
std::string quoted_for_shell(const std::string& argument);
std::string quoted_for_shell(const std::vector<std::string>& arguments);  // with blanks between them

// The arguments of a command line, without a comment at its end. Absent where the line means more than one command with
// literal arguments: a shell would expand, redirect or run something else.
std::optional<std::vector<std::string>> arguments_in(std::string_view command);

}  // namespace hf
