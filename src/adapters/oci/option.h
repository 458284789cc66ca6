// Option: the words of a command line of runc's or crun's, one by one. Bare (core/base/bare.h): a call that is none of
// our business is known as such before there is a C library.
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

// "--name", "-name", "--name=value"; absent for a word that is no option. "-" alone is a file.
std::optional<Option> option_of(std::string_view word);

// "-b/path": crun takes a short option and its value in one word. Where it is no path it may be runc's "-bundle".
bool has_path_attached(std::string_view word);

bool is_among(std::string_view name, std::span<const std::string_view> names);

// Does an option that stands before the verb take the next word, where it has no "="?
bool takes_next_word(std::string_view global_option);

Verb verb_of(std::string_view word);

}  // namespace hf::oci
