#include "adapters/cdi/version.h"

#include <vector>

#include "core/base/text.h"

namespace hf::cdi {

std::optional<Version> parse_version(std::string_view text) {
  const std::vector<std::string_view> parts = split(text.starts_with('v') ? text.substr(1) : text, '.');
  if (parts.size() != 3) {
    return std::nullopt;
  }
  const std::optional<std::uint32_t> major = parse_number<std::uint32_t>(parts[0]);
  const std::optional<std::uint32_t> minor = parse_number<std::uint32_t>(parts[1]);
  const std::optional<std::uint32_t> patch = parse_number<std::uint32_t>(parts[2]);
  return major && minor && patch ? std::optional(Version{*major, *minor, *patch}) : std::nullopt;
}

std::string to_string(const Version& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." + std::to_string(version.patch);
}

}  // namespace hf::cdi
