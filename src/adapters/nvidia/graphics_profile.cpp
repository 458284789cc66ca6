#include "adapters/nvidia/graphics_profile.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "core/base/text.h"

namespace hf::nvidia {

std::string graphics_profile(const std::vector<std::string>& nodes) {
  constexpr std::string_view kGpu = "nvidia";
  constexpr unsigned kBits = 64;  // the setting has no more
  std::uint64_t mask = 0;
  for (const std::string& node : nodes) {
    const std::string_view name = base_name(node);
    const auto minor = name.starts_with(kGpu) ? parse_number<unsigned>(name.substr(kGpu.size())) : std::nullopt;
    mask |= minor && *minor < kBits ? std::uint64_t(1) << *minor : 0;
  }
  if (mask == 0) {
    return {};
  }
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(mask));
  return R"({"profiles": [{"name": "container", "settings": ["EGLVisibleDGPUDevices", )" + std::string(text.data()) +
         R"(]}], "rules": [{"pattern": [], "profile": "container"}]})" + "\n";
}

}  // namespace hf::nvidia
