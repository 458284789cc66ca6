// Hook: prepares a container's file system before its first program runs: the loader's cache, symlinks, newer CUDA
// libraries of the image, and a driver that must not change device nodes. One process does all of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::shim {

struct HookOptions {
  std::vector<std::string> directories;  // directories with libraries
  struct Link {
    std::string target;
    std::string path;
  };
  std::vector<Link> links;
  std::string driver_version;  // compared with the image's own CUDA libraries; "": those are left alone
  bool keeps_device_files = false;
  std::string spec;  // path of the spec, where it is not the bundle's config.json
};

// "create-container --directory DIR --link TARGET::PATH --cuda-compat VERSION --spec FILE
// --keep-device-files"
Result<HookOptions> parse_hook_options(const std::vector<std::string>& arguments);

// The image's own directory of CUDA libraries if they are newer than the driver's, "" otherwise.
std::string find_compat_directory(int root, const std::string& driver_version);

// Fails if the cache has names that no library can have: with "/", ".." or control characters in them.
Result<void> check_cache(std::string_view cache);

// The runtime calls this in the container's mount namespace, with the container's state on standard input.
int serve_hook(const std::vector<std::string>& arguments);

}  // namespace hf::shim
