// Version: the version of a CDI spec.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hf::cdi {

struct Version {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint32_t patch = 0;

  friend auto operator<=>(const Version&, const Version&) = default;
};

inline constexpr Version kNewest = {1, 1, 0};
// Earlier versions existed, but no engine reads them any more.
inline constexpr std::array<Version, 8> kVersions = {
    {{0, 3, 0}, {0, 4, 0}, {0, 5, 0}, {0, 6, 0}, {0, 7, 0}, {0, 8, 0}, {1, 0, 0}, kNewest}};

std::optional<Version> parse_version(std::string_view text);  // "0.5.0", "v0.5.0"
std::string to_string(const Version& version);

}  // namespace hf::cdi
