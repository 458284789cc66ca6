// Pod: what the containers of a pod request, and how many exclusive CPUs that means.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::cpu {

// init: runs before the others and ends. sidecar: an init container that keeps running. app: the rest.
enum class ContainerRole : std::uint8_t { init, sidecar, app };

struct CpuAmount {
  std::optional<std::uint64_t> request;  // in thousandths of a CPU
  std::optional<std::uint64_t> limit;

  friend bool operator==(const CpuAmount&, const CpuAmount&) = default;
};

struct ContainerRequest {
  std::string name;
  ContainerRole role = ContainerRole::app;
  CpuAmount cpu = {};
};

struct PodRequest {
  std::string uid;
  bool is_guaranteed = false;                     // its QoS class
  std::vector<ContainerRequest> containers = {};  // init and sidecar containers first, in the order of the spec
  std::optional<CpuAmount> cpu_budget = {};       // a budget of the whole pod (pod-level resources)
};

CpuAmount whole_cpus(std::uint32_t count);

// 0: it has no exclusive CPUs and runs in the shared pool.
std::uint32_t exclusive_cpu_count(const PodRequest& pod, const ContainerRequest& container);

// The most that the pod has at one time: init containers release what they had.
std::uint32_t exclusive_cpu_count(const PodRequest& pod);

// Fails, with kubelet's message, where the budget leaves nothing to the containers without exclusive CPUs.
Result<void> check_budget(const PodRequest& pod);

const ContainerRequest* find_container(const PodRequest& pod, std::string_view name);

}  // namespace hf::cpu
