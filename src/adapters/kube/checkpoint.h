// Checkpoint: kubelet's checkpoint files about the devices, claims and CPUs of its pods.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::kube {

struct PluginDevice {
  std::string container_path;
  std::string host_path;
  std::string permissions;
};

// What a device plugin allocated to one container.
struct Allocation {
  std::string pod_uid;
  std::string container;
  std::string resource;  // "nvidia.com/gpu"
  std::vector<std::string> ids;
  std::map<std::string, std::string> environment;
  std::vector<PluginDevice> devices;
  std::vector<std::string> cdi_devices;  // also those named in annotations
};

struct Checkpoint {
  std::vector<Allocation> allocations;
  std::map<std::string, std::vector<std::string>> registered;  // ids by resource
};

Result<Checkpoint> parse_checkpoint(std::string_view json);  // device-plugins/kubelet_internal_checkpoint

// A resource claim that was prepared for pods (dra_manager_state).
struct PreparedClaim {
  std::string name;
  std::vector<std::string> pod_uids;
  std::vector<std::string> cdi_devices;
};
Result<std::vector<PreparedClaim>> parse_prepared_claims(std::string_view json);

// The CDI names in annotations: cdi.k8s.io/… = "vendor.com/class=name,…".
std::vector<std::string> cdi_names_in(const std::map<std::string, std::string>& annotations);

// The parts of cpu_manager_state that name the policy and the exclusive CPUs of each container ("uid/name").
struct CpuState {
  std::string policy;
  std::map<std::string, std::string> exclusive;
};
Result<CpuState> parse_cpu_state(std::string_view json);

}  // namespace hf::kube
