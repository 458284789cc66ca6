#include "core/container/guard/tier.h"

#include <array>

#include "core/base/text.h"

namespace hf::container {
namespace {

constexpr std::array<std::pair<Tier, const char*>, 3> kNames = {
    {{Tier::tracepoints, "tracepoints"}, {Tier::files, "files"}, {Tier::polling, "polling"}}};

}  // namespace

std::string to_string(Tier tier) {
  for (const auto& [known, name] : kNames) {
    if (known == tier) {
      return name;
    }
  }
  return "unknown";
}

Result<Tier> parse_tier(std::string_view text) {
  for (const auto& [tier, name] : kNames) {
    if (text == name) {
      return tier;
    }
  }
  return fail(std::errc::invalid_argument, "tier " + quote(text) + ": want tracepoints, files or polling");
}

}  // namespace hf::container
