// Facts: what is read before it is decided what a new container is given.
#pragma once

#include <optional>
#include <string>

#include "adapters/config/config.h"
#include "adapters/oci/spec.h"
#include "core/container/container.h"
#include "core/device/inventory.h"
#include "host/evidence.h"
#include "kernel/files/host.h"
#include "services/shim/request.h"

namespace hf::shim {

struct DeliveryInput {
  std::string bundle;  // an absolute path
  oci::Spec spec;
  std::string ourselves;  // path of this program, which is also the container's hook
  std::string file = {};  // path of the spec, where it is not the bundle's config.json
  Starter starter = Starter::other;
};

struct Facts {
  DeviceRequest request;
  std::optional<container::Pod> pod;  // absent outside pods, and where the config trusts it
  host::Sources sources;              // kubelet's, and CDI's where plan_delivery needs them
  device::Inventory inventory;

  [[nodiscard]] bool has_gpu() const;
  // Has kubelet allocated any of NVIDIA's devices, or the one with this id, to this container of the pod?
  [[nodiscard]] bool is_any_gpu_allocated() const;
  [[nodiscard]] bool is_gpu_allocated(const std::string& id) const;
  // Compares the exact name: a device may consist of mounts and hooks alone, so its nodes prove nothing.
  [[nodiscard]] bool is_cdi_name_allocated(const std::string& name) const;
  // In a pod the image's environment counts as a request only if kubelet has allocated something.
  [[nodiscard]] bool trusts_nvidia() const { return request.asks_nvidia() && (!pod || is_any_gpu_allocated()); }
};

// Absent where the container requests no device, and none of its requests is ignored.
std::optional<Facts> read_facts(const kernel::Host& host, const config::Config& config, const DeliveryInput& input);

// Takes the inventory of the devices that matter for the container.
void read_inventory(const kernel::Host& host, const config::Config& config, const oci::Spec& spec, Facts& facts);

}  // namespace hf::shim
