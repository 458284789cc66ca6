#include "core/cpu/pod.h"

#include <algorithm>

namespace hf::cpu {
namespace {

constexpr std::uint64_t kMilli = 1000;

std::uint32_t whole(const CpuAmount& amount) {
  const std::uint64_t milli = amount.request.value_or(0);
  return milli % kMilli == 0 ? std::uint32_t(std::min(milli / kMilli, std::uint64_t(UINT32_MAX))) : 0;
}

}  // namespace

CpuAmount whole_cpus(std::uint32_t count) { return {.request = count * kMilli, .limit = count * kMilli}; }

std::uint32_t exclusive_cpu_count(const PodRequest& pod, const ContainerRequest& container) {
  if (!pod.is_guaranteed || (pod.cpu_budget && container.cpu.request != container.cpu.limit)) {
    return 0;
  }
  return whole(container.cpu);
}

std::uint32_t exclusive_cpu_count(const PodRequest& pod) {
  if (pod.cpu_budget) {
    return pod.is_guaranteed ? whole(*pod.cpu_budget) : 0;
  }
  std::uint32_t at_most = 0;  // while init containers run
  std::uint32_t staying = 0;
  for (const ContainerRequest& container : pod.containers) {
    const std::uint32_t cpus = exclusive_cpu_count(pod, container);
    if (container.role == ContainerRole::init) {
      at_most = std::max(at_most, staying + cpus);
    } else {
      staying += cpus;
    }
  }
  return std::max(at_most, staying);
}

Result<void> check_budget(const PodRequest& pod) {
  const std::uint32_t budget = exclusive_cpu_count(pod);
  std::uint32_t given = 0;
  bool any_shares = false;
  bool init_has_none = false;
  for (const ContainerRequest& container : pod.containers) {
    const std::uint32_t cpus = exclusive_cpu_count(pod, container);
    if (container.role == ContainerRole::init) {
      init_has_none = init_has_none || (cpus == 0 && given >= budget);
    } else {
      given += cpus;
      any_shares = any_shares || cpus == 0;
    }
  }
  if (any_shares && given >= budget) {
    return fail(Reason::unavailable,
                "pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared "
                "containers");
  }
  if (init_has_none) {
    return fail(Reason::unavailable, "pod rejected, pod has shared init containers but no cpus available for them");
  }
  return {};
}

const ContainerRequest* find_container(const PodRequest& pod, std::string_view name) {
  const auto found = std::ranges::find(pod.containers, name, &ContainerRequest::name);
  return found == pod.containers.end() ? nullptr : &*found;
}

}  // namespace hf::cpu
