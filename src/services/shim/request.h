// Request: the devices a bundle asks for, by every way of asking there is.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/config/config.h"
#include "adapters/nvidia/request.h"
#include "adapters/oci/spec.h"
#include "core/device/device_class.h"

namespace hf::shim {

struct DeviceRequest {
  std::vector<std::string> cdi_names;  // "vendor.com/class=name"
  bool is_by_environment = false;      // these names: an image can set it
  nvidia::Request nvidia;              // without such names
  std::string nvidia_words;            // how it was asked for, for people; "" where it was not
  std::vector<std::string> features;   // "gds", "mofed", "gdrcopy", "nvswitch": NVIDIA_GDS=enabled and so on

  [[nodiscard]] bool asks_nvidia() const { return !nvidia_words.empty(); }
};

// The parent process of the runtime. containerd and docker put only their user's annotations into a spec; podman lets
// an image bring annotations along, and of others nothing is known.
enum class Starter : std::uint8_t { containerd_shim, kubelets_shim, other };
// By the path of its executable, and of the bundle: below containerd's namespace k8s.io all containers are kubelet's.
Starter starter_named(std::string_view program, std::string_view bundle);

// CDI names in annotations are requests where a containerd shim wrote them, and in pods, where kubelet's allocations
// say which of them count.
bool believes_annotations(const oci::Spec& spec, Starter starter);
// By its cgroup, and where that cannot be told: what is not known to be outside pods is not.
bool is_of_pod(const oci::Spec& spec, Starter starter);

// The first way of asking that is used counts: annotations, mounts, environment.
DeviceRequest request_of(const oci::Spec& spec, const config::RuntimeSettings& settings, Starter starter);

// Could it ask for a device at all? A look at the text, in no time: most containers do not. `more` are beginnings of
// paths that belong to classes of the config file.
bool may_ask(std::string_view text, std::span<const std::string> more = {});

// The part of every pattern of these classes that is no pattern: "/dev/mychip".
std::vector<std::string> signs_of(const device::DeviceClasses& classes);

}  // namespace hf::shim
