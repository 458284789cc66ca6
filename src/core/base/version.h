// Version: a version such as "1.1.5", "1.0.0~rc93" or "1.1.5+ds1", ordered as releases are.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hf {

struct Version {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint32_t patch = 0;
  std::uint32_t candidate = 0xffff;  // number of a release candidate; the default puts a release after its candidates

  friend auto operator<=>(const Version&, const Version&) = default;
};

std::optional<Version> parse_version(
    std::string_view text);  // ignores a leading "v", and what follows the numbers unless it is a candidate's

}  // namespace hf
