// Request: the devices that a bundle requests by annotations, mounts or environment variables.
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
  bool is_by_environment = false;      // whether the CDI names come from there, where an image can set them
  nvidia::Request nvidia;              // without the CDI names
  std::string nvidia_description;      // how NVIDIA GPUs were requested, for messages; "" if they were not
  std::vector<std::string> features;   // the variables of other devices that are "enabled": "NVIDIA_GDS"
  std::vector<std::string> ignored;    // why a variable or a mount has no effect

  [[nodiscard]] bool asks_nvidia() const { return !nvidia_description.empty(); }
};

// The parent process of the runtime. containerd and docker put only their user's annotations into a spec; podman also
// copies those of the image, and for other engines it is unknown. conmon is podman's or CRI-O's.
enum class Starter : std::uint8_t { containerd_shim, kubelets_shim, conmon, other };
// Decided by the paths of its executable and of the bundle: containers in containerd's namespace k8s.io are kubelet's.
Starter starter_named(std::string_view program, std::string_view bundle);

// CDI names in annotations are trusted as requests if a containerd shim started us, and in pods, where kubelet's
// allocations decide which of them count.
bool believes_annotations(const oci::Spec& spec, Starter starter);
// Decided by its cgroup. A container that is not known to be outside pods counts as one of a pod.
bool is_of_pod(const oci::Spec& spec, Starter starter);

// Uses the first of annotations, mounts and environment that has a request.
DeviceRequest request_of(const oci::Spec& spec, const config::RuntimeSettings& settings, Starter starter);

// Could the spec request a device at all? A fast text search, because most containers request none. `prefixes` are
// path prefixes of the config file's device classes.
bool may_ask(std::string_view text, std::span<const std::string> prefixes = {});

// The literal prefix of every path pattern of these classes: "/dev/mychip".
std::vector<std::string> path_prefixes_of(const device::DeviceClasses& classes);

}  // namespace hf::shim
