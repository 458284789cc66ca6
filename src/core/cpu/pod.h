// Pod: what its containers ask for, and how many cores of their own that means.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::cpu {

// init: runs before the others and ends. sidecar: an init container that stays. app: the rest.
enum class ContainerRole : std::uint8_t { init, sidecar, app };

struct CpuAmount {
  std::optional<std::uint64_t> request;  // in thousandths of a CPU
  std::optional<std::uint64_t> limit;

  friend bool operator==(const CpuAmount&, const CpuAmount&) = default;
};

struct ContainerAsk {
  std::string name;
  ContainerRole role = ContainerRole::app;
  CpuAmount cpu = {};
};

struct PodAsk {
  std::string uid;
  bool is_guaranteed = false;                    // its QoS class
  std::vector<ContainerAsk> containers = {};     // init and sidecar containers first, in their order
  std::optional<CpuAmount> shared_between = {};  // a budget of the whole pod (pod-level resources)
};

CpuAmount whole_cpus(std::uint32_t count);

// 0: none of its own, it runs in the shared pool.
std::uint32_t cpus_of_its_own(const PodAsk& pod, const ContainerAsk& container);

// The most that the pod has at one time: init containers give back what they had.
std::uint32_t cpus_of_its_own(const PodAsk& pod);

// Whether the budget leaves something to the containers that ask for no core of their own; kubelet's words.
Result<void> check_budget(const PodAsk& pod);

const ContainerAsk* find_container(const PodAsk& pod, std::string_view name);

}  // namespace hf::cpu
