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

std::uint32_t cpus_of_its_own(const PodAsk& pod, const ContainerAsk& container) {
  if (!pod.is_guaranteed || (pod.shared_between && container.cpu.request != container.cpu.limit)) {
    return 0;
  }
  return whole(container.cpu);
}

std::uint32_t cpus_of_its_own(const PodAsk& pod) {
  if (pod.shared_between) {
    return pod.is_guaranteed ? whole(*pod.shared_between) : 0;
  }
  std::uint32_t at_most = 0;  // while init containers run
  std::uint32_t staying = 0;
  for (const ContainerAsk& container : pod.containers) {
    const std::uint32_t cpus = cpus_of_its_own(pod, container);
    if (container.role == ContainerRole::init) {
      at_most = std::max(at_most, staying + cpus);
    } else {
      staying += cpus;
    }
  }
  return std::max(at_most, staying);
}

Result<void> check_budget(const PodAsk& pod) {
  const std::uint32_t budget = cpus_of_its_own(pod);
  std::uint32_t given = 0;
  bool someone_shares = false;
  bool init_has_none = false;
  for (const ContainerAsk& container : pod.containers) {
    const std::uint32_t cpus = cpus_of_its_own(pod, container);
    if (container.role == ContainerRole::init) {
      init_has_none = init_has_none || (cpus == 0 && given >= budget);
    } else {
      given += cpus;
      someone_shares = someone_shares || cpus == 0;
    }
  }
  if (someone_shares && given >= budget) {
    return fail(std::errc::resource_unavailable_try_again,
                "pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared "
                "containers");
  }
  if (init_has_none) {
    return fail(std::errc::resource_unavailable_try_again,
                "pod rejected, pod has shared init containers but no cpus available for them");
  }
  return {};
}

const ContainerAsk* find_container(const PodAsk& pod, std::string_view name) {
  const auto found = std::ranges::find(pod.containers, name, &ContainerAsk::name);
  return found == pod.containers.end() ? nullptr : &*found;
}

}  // namespace hf::cpu
