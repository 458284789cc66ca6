// Option: one argument of a command line of runc or crun.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "adapters/oci/command_line.h"

namespace hf::oci {

struct Option {
  std::string_view name;
  std::optional<std::string_view> value;
};

// "--name", "-name", "--name=value"; absent for an argument that is no option. "-" alone is a file.
std::optional<Option> parse_option(std::string_view argument);

// "-b/path": crun accepts a short option and its value in one argument. Where the rest is no path it may be runc's
// "-bundle".
bool has_path_attached(std::string_view argument);

bool is_among(std::string_view name, std::span<const std::string_view> names);

// Does an option before the command take the next argument as its value, where it has no "="?
bool takes_next_argument(std::string_view global_option);

Verb verb_of(std::string_view argument);

}  // namespace hf::oci
