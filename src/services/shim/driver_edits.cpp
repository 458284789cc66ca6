#include "services/shim/driver_edits.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "adapters/nvidia/driver_cache.h"
#include "adapters/nvidia/files.h"
#include "adapters/nvidia/requirement.h"
#include "kernel/files/device_node.h"
#include "kernel/files/file.h"
#include "services/shim/refusal.h"

namespace hf::shim {
namespace {

using container::ContainerEdits;
using device::Access;

Result<void> check_requirements(const oci::Spec& spec, const std::string& driver) {
  nvidia::HostDeviceFacts facts = {{"driver", driver}};
  const std::string cuda = nvidia::cuda_of_driver(driver);
  if (!cuda.empty()) {
    facts["cuda"] = cuda;
  }
  const std::optional<std::string> unmet = nvidia::find_unmet(spec.environment, facts);
  return unmet ? refuse("the image wants " + *unmet + ", and driver " + driver + " runs CUDA " +
                        (cuda.empty() ? "of an unknown version" : cuda) +
                        ": update the driver, or set NVIDIA_DISABLE_REQUIRE=1")
               : Result<void>();
}

void add_node(ContainerEdits& edits, const kernel::Host& host, const std::string& path) {
  const std::optional<kernel::NodeOnHost> live = kernel::read_node(host, path);
  if (live) {
    append(edits, {.nodes = {{.path = path,
                              .device = live->device,
                              .access = Access::read | Access::write,
                              .mode = live->mode,
                              .uid = live->uid,
                              .gid = live->gid}}});
  }
}

}  // namespace

Result<DriverEdits> driver_edits(const kernel::Host& host, const config::RuntimeSettings& settings,
                                 const DeliveryInput& input, const DeviceRequest& request) {
  const Result<nvidia::CachedDriver> driver = nvidia::read_cached_driver(host, settings.driver_root);
  if (!driver) {
    return refuse(request.nvidia_description + ", but the driver's files cannot be read: " + driver.error().message +
                  " (runtime.driver_root in /etc/holdfast/config.yaml says where they lie)");
  }
  const nvidia::DriverFiles& files = driver->files;
  TRY(check_requirements(input.spec, files.version));
  ContainerEdits edits = edits_of(files, request.nvidia.capabilities, {input.ourselves});
  for (container::HookEdit& hook : edits.hooks) {
    if (!input.file.empty()) {
      hook.arguments.insert(hook.arguments.end(), {"--spec", input.file});
    }
  }
  return DriverEdits{std::move(edits), files.identities, driver->to_cache};
}

ContainerEdits feature_edits(const kernel::Host& host, std::string_view feature) {
  constexpr std::array<std::array<std::string_view, 3>, 6> kNodes = {{{"NVIDIA_GDS", "/dev", "nvidia-fs"},
                                                                      {"NVIDIA_MOFED", "/dev/infiniband", "uverbs"},
                                                                      {"NVIDIA_MOFED", "/dev/infiniband", "rdma_cm"},
                                                                      {"NVIDIA_GDRCOPY", "/dev", "gdrdrv"},
                                                                      {"NVIDIA_NVSWITCH", "/dev", "nvidia-nvswitchctl"},
                                                                      {"NVIDIA_NVSWITCH", "/dev", "nvidia-nvswitch"}}};
  ContainerEdits edits;
  for (const auto& [of, directory, prefix] : kNodes) {
    if (of != feature) {
      continue;
    }
    for (const std::string& name : kernel::list_names(host.root.get(), kernel::below_root(std::string(directory)))) {
      if (name.starts_with(prefix)) {
        add_node(edits, host, std::string(directory) + "/" + name);
      }
    }
  }
  for (const char* path : {"/run/udev", "/etc/cufile.json"}) {
    if (feature == "NVIDIA_GDS" && kernel::exists(host.root.get(), kernel::below_root(path))) {
      append(edits, {.mounts = {{path, path, "", {"ro", "nosuid", "nodev", "rbind", "rprivate"}}}});
    }
  }
  return edits;
}

}  // namespace hf::shim
