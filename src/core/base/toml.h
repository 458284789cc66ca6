// Toml: a look at a text before toml++ reads it: the version that Debian 12 has goes astray in places where no TOML
// leads.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace hf {

// The first such place: a letter beyond ASCII outside strings and comments, a value or an element that is missing;
// absent in every text that is TOML.
std::optional<std::size_t> find_trap(std::string_view text);

}  // namespace hf
