// Version: "1.1.5", "1.0.0~rc93", "1.1.5+ds1" as an order.
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
  std::uint32_t candidate = 0xffff;  // of a release candidate its number: all of them come before the release

  friend auto operator<=>(const Version&, const Version&) = default;
};

std::optional<Version> parse_version(
    std::string_view text);  // a leading "v" and what comes after the numbers is left out

}  // namespace hf
