// HookOptions: what a container with a GPU needs in its file system beside mounts. The hook of holdfast-runtime takes
// it as its arguments, from container specs and CDI specs.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/entitlement/edits.h"

namespace hf::nvidia {

struct HookOptions {
  struct Link {
    std::string target;
    std::string path;

    friend bool operator==(const Link&, const Link&) = default;
  };

  std::vector<std::string> directories;  // directories with libraries
  std::vector<Link> links;
  std::string driver_version;       // compared with the image's own CUDA libraries; "": those are left alone
  bool keeps_device_files = false;  // the driver's libraries must not create device nodes
  bool limits_graphics = false;     // EGL and Vulkan show the GPUs of the container only
  std::string spec;                 // path of the spec, where it is not the bundle's config.json

  // Otherwise it covers a file of procfs at most, and needs no sandbox.
  [[nodiscard]] bool changes_root() const { return !directories.empty() || !links.empty() || limits_graphics; }
  friend bool operator==(const HookOptions&, const HookOptions&) = default;
};

// "create-container --directory DIR --link TARGET::PATH --cuda-compat VERSION --spec FILE --keep-device-files
// --limit-graphics"
Result<HookOptions> parse_hook_options(const std::vector<std::string>& arguments);

// `program`: the path of holdfast-runtime on the host.
container::HookEdit hook_of(const HookOptions& options, const std::string& program);
// Absent where the hook is another program's, or has options that are not known here.
std::optional<HookOptions> options_of(const container::HookEdit& hook);

}  // namespace hf::nvidia
