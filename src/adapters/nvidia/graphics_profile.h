// GraphicsProfile: a file of settings for NVIDIA's driver libraries that limits EGL and Vulkan to some GPUs. They list
// all GPUs of the host otherwise, and fail at those whose device nodes the container does not have.
#pragma once

#include <string>
#include <vector>

namespace hf::nvidia {

inline constexpr const char* kGraphicsProfileDirectory = "/etc/nvidia/nvidia-application-profiles-rc.d";
inline constexpr const char* kGraphicsProfileName = "10-container.conf";

// `nodes`: paths or names of device nodes, of which only those of GPUs count. "" where there is none.
std::string graphics_profile(const std::vector<std::string>& nodes);

}  // namespace hf::nvidia
