#include "core/cpu/policy.h"

#include <algorithm>
#include <utility>

namespace hf::cpu {
namespace {

std::unexpected<Error> refuse(std::string why) { return fail(std::errc::invalid_argument, std::move(why)); }

std::string quoted(const CpuSet& set) { return "\"" + to_string(set) + "\""; }

CpuSet cpus_of_cores(const Layout& layout, const CpuSet& members) {
  CpuSet cpus;
  for (const std::uint32_t cpu : members& layout.cpus) {
    for (const Index thread : layout.threads_of_cores.parts(layout.cores.of_row(layout.row_of[cpu]))[0].cpus) {
      cpus.add(thread);
    }
  }
  return cpus;
}

Result<void> check_entries(const State& state) {
  for (const auto& [owner, cpus] : state.entries) {
    if (cpus.overlaps(state.shared)) {
      return refuse("pod: " + owner.pod + ", container: " + owner.container + " cpuset: " + quoted(cpus) +
                    " overlaps with default cpuset " + quoted(state.shared));
    }
  }
  return {};
}

CpuSet expected_cpus(const Policy& policy) {
  return policy.options.strict_reservation ? policy.layout->cpus - policy.reserved : policy.layout->cpus;
}

}  // namespace

Result<Policy> make_policy(const Layout& layout, const Options& options, const CpuSet& list,
                           std::optional<std::uint32_t> amount) {
  TRY(check_options(options, layout.topology));
  Policy policy{.layout = &layout, .options = options, .reserved = list, .reserved_cores = {}};
  if (list.empty() && amount.value_or(0) > 0) {
    policy.reserved = take(policy, layout.cpus, *amount).value_or(CpuSet());
  }
  if (amount && policy.reserved.count() != *amount) {
    return refuse("[cpumanager] unable to reserve the required amount of CPUs (size of " + to_string(policy.reserved) +
                  " did not equal " + std::to_string(*amount) + ")");
  }
  if (!layout.cpus.contains(policy.reserved)) {
    return refuse("reserved CPUs " + quoted(policy.reserved - layout.cpus) + " are not of this machine (" +
                  to_string(layout.cpus) + ")");
  }
  policy.reserved_cores = cpus_of_cores(layout, policy.reserved);
  return policy;
}

Policy keep_reserved(Policy policy, const CpuSet& kept, const CpuSet& owned) {
  const CpuSet& all = policy.layout->cpus;
  CpuSet reserved = (kept & all) - owned;
  for (const CpuSet& avoided : {owned, CpuSet()}) {
    const CpuSet free = all - avoided - reserved;
    if (policy.reserved.count() > reserved.count()) {
      const std::uint32_t missing = policy.reserved.count() - reserved.count();
      reserved |= take(policy, free, std::min(missing, free.count())).value_or(CpuSet());
    }
  }
  policy.reserved = reserved;
  policy.reserved_cores = cpus_of_cores(*policy.layout, reserved);
  return policy;
}

Result<void> start(const Policy& policy, State& state) {
  if (state.shared.empty() && state.entries.empty()) {
    state.shared = expected_cpus(policy);
  }
  TRY(check_as_kubelet(policy, state));
  return check_owners(policy, state);
}

Result<void> check_as_kubelet(const Policy& policy, const State& state) {
  if (state.shared.empty()) {
    return state.entries.empty() ? Result<void>() : refuse("default cpuset cannot be empty");
  }
  if (policy.options.strict_reservation) {
    if (state.shared.overlaps(policy.reserved)) {
      return refuse("some of strictly reserved cpus: " + quoted(state.shared & policy.reserved) +
                    " are present in defaultCpuSet: " + quoted(state.shared));
    }
  } else if (!state.shared.contains(policy.reserved)) {
    return refuse("not all reserved cpus: " + quoted(policy.reserved) +
                  " are present in defaultCpuSet: " + quoted(state.shared));
  }
  TRY(check_entries(state));
  const CpuSet expected = expected_cpus(policy);
  const CpuSet known = state.shared | given_cpus(state);
  if (known != expected) {
    return refuse("current set of available CPUs " + quoted(expected) + " doesn't match with CPUs in state " +
                  quoted(known));
  }
  return {};
}

// Containers of one pod may share CPUs: an init container has ended when the next one starts.
Result<void> check_owners(const Policy& policy, const State& state) {
  std::map<std::string, CpuSet> by_pod = state.pods;
  for (const auto& [owner, cpus] : state.entries) {
    by_pod[owner.pod] |= cpus;
    if (cpus.overlaps(policy.reserved)) {
      return refuse("pod: " + owner.pod + ", container: " + owner.container + " cpuset: " + quoted(cpus) +
                    " has reserved CPUs " + quoted(cpus & policy.reserved));
    }
  }
  for (const auto& [pod, cpus] : state.pods) {
    if (cpus.overlaps(policy.reserved)) {
      return refuse("pod: " + pod + " cpuset: " + quoted(cpus) + " has reserved CPUs " +
                    quoted(cpus & policy.reserved));
    }
  }
  std::map<std::uint32_t, std::string> pod_of;
  for (const auto& [pod, cpus] : by_pod) {
    for (const std::uint32_t cpu : cpus) {
      const auto [other, is_new] = pod_of.try_emplace(cpu, pod);
      if (!is_new) {
        return refuse("CPU " + std::to_string(cpu) + " belongs to two pods: " + other->second + " and " + pod);
      }
    }
  }
  return {};
}

CpuSet assignable(const Policy& policy, const State& state) { return state.shared - policy.reserved; }

Result<void> check_full_cores(const Policy& policy, const State& state, std::uint32_t count) {
  if (!policy.options.full_cores) {
    return {};
  }
  const std::uint32_t threads = std::max(1U, threads_per_core(policy.layout->topology.counters));
  if (count % threads != 0) {
    return fail(Reason::unavailable, "SMT Alignment Error: requested " + std::to_string(count) +
                                         " cpus not multiple cpus per core = " + std::to_string(threads));
  }
  const std::uint32_t available = (state.shared - policy.reserved_cores).count();
  if (count > available) {
    return fail(Reason::unavailable, "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = " +
                                         std::to_string(available) + ", requested CPUs = " + std::to_string(count) +
                                         ", CPUs per core = " + std::to_string(threads));
  }
  return {};
}

}  // namespace hf::cpu
