// Hook: prepares a container's file system before its first program runs, where that cannot be done before the
// container exists: the loader's cache, symlinks, newer CUDA libraries of the image, and a driver that must not change
// device nodes. One process does all of it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "adapters/nvidia/hook_options.h"
#include "core/base/result.h"

namespace hf::shim {

// Where images have newer CUDA libraries. More names in it are not looked at.
inline constexpr const char* kCompat = "/usr/local/cuda/compat";
inline constexpr std::size_t kMostCompatNames = 1024;

// The image's own directory of CUDA libraries if they are newer than the driver's, "" otherwise.
std::string find_compat_directory(int root, const std::string& driver_version);

// The runtime calls this in the container's mount namespace, with the container's state on standard input.
int serve_hook(const std::vector<std::string>& arguments);

}  // namespace hf::shim
