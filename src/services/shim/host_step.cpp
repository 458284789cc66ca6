#include "services/shim/host_step.h"

#include "adapters/nvidia/driver_cache.h"
#include "kernel/files/device_node.h"
#include "kernel/files/file.h"

namespace hf::shim {
namespace {

Result<void> carry_out(const kernel::Host& host, const CreateNode& node) {
  return kernel::make_node_on(host, {node.path, node.device, node.permissions});
}

Result<void> carry_out(const kernel::Host& host, const CreateSymlink& link) {
  if (kernel::exists(host.root.get(), kernel::below_root(link.path))) {
    return {};
  }
  return kernel::make_symlink_on(host, link.path, link.target);
}

Result<void> carry_out(const kernel::Host& host, const CacheDriver& cache) {
  return nvidia::write_driver_cache(host, cache.contents);
}

}  // namespace

Result<void> carry_out(const kernel::Host& host, const std::vector<HostStep>& steps) {
  for (const HostStep& step : steps) {
    const Result<void> done = std::visit([&host](const auto& change) { return carry_out(host, change); }, step.change);
    if (!done && !step.may_fail) {
      return done;
    }
  }
  return {};
}

}  // namespace hf::shim
