// Hook: what has to be done within a container's file system before its first program runs: the loader's cache, links,
// newer CUDA libraries of the image, and the driver's wish to change device nodes. One process for all of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::shim {

struct HookWords {
  std::vector<std::string> folders;  // with libraries
  struct Link {
    std::string target;
    std::string path;
  };
  std::vector<Link> links;
  std::string driver_version;  // for the image's own CUDA libraries; "": they are left alone
  bool keeps_device_files = false;
  std::string spec;  // where it is not the bundle's config.json
};

// "create-container --folder DIR --link TARGET::PATH --cuda-compat VERSION --spec FILE
// --keep-device-files"
Result<HookWords> parse_hook_words(const std::vector<std::string>& words);

// The folder of CUDA libraries that the image has itself, where they are newer than the driver's: "" otherwise.
std::string find_compat_folder(int root, const std::string& driver_version);

// A cache with names that no library has (with "/", ".." or control characters in them) is refused.
Result<void> check_cache(std::string_view cache);

// Called by the runtime in the container's mount namespace, with its state on standard input.
int serve_hook(const std::vector<std::string>& words);

}  // namespace hf::shim
