// DriverEdits: the files of NVIDIA's driver that a container with a GPU is given, and the nodes of other devices that
// it uses together with the GPU.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "adapters/config/config.h"
#include "adapters/nvidia/library_identity.h"
#include "core/base/result.h"
#include "core/container/entitlement/edits.h"
#include "kernel/files/host.h"
#include "services/shim/facts.h"

namespace hf::shim {

// Fails where the files cannot be read, or the image requires another driver.
struct DriverEdits {
  container::ContainerEdits edits;
  std::map<std::string, nvidia::LibraryIdentity> identities;  // of the libraries, by their paths on the host
  std::string to_cache;                                       // as in nvidia::CachedDriver
};
Result<DriverEdits> driver_edits(const kernel::Host& host, const config::RuntimeSettings& settings,
                                 const DeliveryInput& input, const DeviceRequest& request);

// The host's nodes, and the files that go with them, of "NVIDIA_GDS", "NVIDIA_MOFED", "NVIDIA_GDRCOPY" or
// "NVIDIA_NVSWITCH".
container::ContainerEdits feature_edits(const kernel::Host& host, std::string_view feature);

}  // namespace hf::shim
