// The manager's view of the containers' cgroups: what they have, which other programs change it, and the writes.
#include <algorithm>
#include <set>

#include "adapters/systemd/allowed_cpus.h"
#include "adapters/systemd/unit.h"
#include "core/base/text.h"
#include "services/cpus/irqs.h"
#include "services/cpus/manager.h"

namespace hf::cpus {
namespace {

constexpr std::uint64_t kConflictTime = 60'000'000'000;  // 60 s
constexpr std::uint64_t kEngineTime = 5'000'000'000;     // for a runtime to apply what its engine told it
constexpr std::size_t kMostConflicts = 3;                // in that time: then the other one is named, not fought

constexpr std::uint64_t kIrqTime = 10'000'000'000;  // between two readings of all interrupts

constexpr std::uint64_t kPeriod = 100'000;  // microseconds: the kernel's default

bool is_in_pod(const host::CpuTenant& tenant) { return tenant.container.pod && !tenant.container.pod->uid.empty(); }

// Its configuration gives it less CPU time than its CPUs have. An image may ask for CPUs; the limit is the operator's.
bool is_limited(const host::CpuTenant& tenant, const cpu::CpuSet& own) {
  const std::int64_t quota = tenant.time.quota.value_or(-1);
  return !is_in_pod(tenant) && quota > 0 && std::uint64_t(quota) < own.count() * tenant.time.period.value_or(kPeriod);
}

bool has_ended(const Error& error) {
  return error.code == std::errc::no_such_device || error.code == std::errc::no_such_file_or_directory;
}

}  // namespace

void Manager::open_cgroups(const Tenants& tenants) {
  std::set<std::string> alive;
  gone_.clear();
  files_.clear();
  for (const host::CpuTenant& tenant : tenants) {
    const std::string& id = tenant.tenant.id;
    alive.insert(id);
    if (!tenant.problem.empty()) {
      note_problem(id, tenant.problem);
    }
    const auto known = cgroups_.find(id);
    if (known != cgroups_.end() && known->second.is_alive()) {
      continue;
    }
    if (known != cgroups_.end()) {  // a container that is started again has another cgroup
      conflicts_.erase(id);
      writers_.erase(id);
    }
    Result<kernel::CpuCgroup> opened = kernel::CpuCgroup::open(host_, mounts_, tenant.container);
    if (opened) {
      cgroups_.insert_or_assign(id, *std::move(opened));
    } else if (has_ended(opened.error())) {
      gone_.insert(id);
    } else {
      note_problem(id, opened.error().message);
    }
  }
  const auto is_gone = [&alive](const auto& entry) { return !alive.contains(entry.first); };
  std::erase_if(cgroups_, is_gone);
  std::erase_if(conflicts_, is_gone);
  std::erase_if(writers_, is_gone);
  for (std::set<std::string>* const ids : {&memory_moved_, &unlimited_}) {
    std::erase_if(*ids, [&alive](const std::string& id) { return !alive.contains(id); });
  }
  above_.clear();
  for (const auto& [id, cgroup] : cgroups_) {
    const Result<cpu::CpuSet> above = cgroup.read_cpus_above();
    if (above && !above->empty() && !above->contains(machine_.online)) {
      above_.emplace(id, *above);
    }
  }
}

std::optional<cpu::CpuSet> Manager::allowed_in(const std::string& cgroup) const {
  const Result<cpu::CpuSet> allowed = kernel::read_cpus_allowed_in(host_, mounts_, cgroup);
  const bool is_limit = allowed && !allowed->empty() && !allowed->contains(machine_.online);
  return is_limit ? std::optional(*allowed) : std::nullopt;
}

bool Manager::is_running(const host::CpuTenant& tenant) const {
  const auto cgroup = cgroups_.find(tenant.tenant.id);
  return cgroup != cgroups_.end() && cgroup->second.has_processes();
}

std::vector<cpu::ManagedContainer> Manager::read_managed(const Tenants& tenants) const {
  std::vector<cpu::ManagedContainer> managed;
  managed.reserve(tenants.size());
  for (const host::CpuTenant& tenant : tenants) {
    cpu::ManagedContainer one{.owner = tenant.tenant.owner, .id = tenant.tenant.id, .present = {}};
    one.can_own = tenant.tenant.request || (!settings_.cpus.options.strict_reservation && !tenant.tenant.confined);
    one.confined = confined(tenant.tenant);
    one.is_of_user = tenant.container.is_owned_by_user;
    const auto cgroup = cgroups_.find(tenant.tenant.id);
    const Result<cpu::CpuSet> cpus = cgroup == cgroups_.end() ? Result<cpu::CpuSet>(fail(std::errc::no_such_device, ""))
                                                              : cgroup->second.read_cpus();
    if (cpus && !cpus->empty()) {
      one.present = *cpus;
    } else if (!cpus) {
      const bool is_gone = gone_.contains(one.id) || (cgroup != cgroups_.end() && has_ended(cpus.error()));
      one.phase = is_gone ? cpu::Phase::ended : cpu::Phase::unknown;
    }
    managed.push_back(std::move(one));
  }
  return managed;
}

// A container whose cpuset is neither the one that was written last nor what the state says has been changed by
// another program. (Other managers and commands change state and cpusets together.)
void Manager::judge_conflicts(const cpu::State& recorded, std::vector<cpu::ManagedContainer>& managed) {
  const std::uint64_t now = settings_.clock();
  for (cpu::ManagedContainer& one : managed) {
    const auto found = conflicts_.find(one.id);
    if (found == conflicts_.end() || !one.present) {
      continue;
    }
    CpusetConflict& conflict = found->second;
    std::erase_if(conflict.at, [now](std::uint64_t at) { return now - at > kConflictTime; });
    if (*one.present == target_of(recorded, one)) {
      conflict.written = *one.present;
    } else if (!conflict.written.empty() && *one.present != conflict.written) {
      if (now >= conflict.ignored_until) {
        conflict.at.push_back(now);
      }
      conflict.written = *one.present;
    }
    if (conflict.at.size() >= kMostConflicts) {
      const auto writer = writers_.find(one.id);
      one.phase = cpu::Phase::contested;
      note_problem(one.id, (writer == writers_.end() ? std::string("another program") : writer->second) +
                               " keeps setting its cpuset to " + to_string(*one.present) + "; it is left alone");
    }
  }
}

void Manager::expect_write_of_engine(const cpu::Owner& owner, std::uint64_t since) {
  for (const cpu::ManagedContainer& one : managed_) {
    if (one.owner == owner) {
      CpusetConflict& conflict = conflicts_[one.id];
      std::erase_if(conflict.at, [since](std::uint64_t at) { return at >= since; });
      conflict.ignored_until = settings_.clock() + kEngineTime;
    }
  }
}

// Any user may write to the files of own cgroups, again and again: that must cost little.
bool Manager::note_writer(std::uint64_t file, const std::function<std::string()>& writer) {
  if (files_.empty()) {
    for (const auto& [id, cgroup] : cgroups_) {
      files_[cgroup.file()] = id;
    }
  }
  const auto found = files_.find(file);
  if (found == files_.end()) {
    return false;
  }
  writers_[found->second] = writer();
  const auto conflict = conflicts_.find(found->second);
  return conflict == conflicts_.end() || conflict->second.at.size() < kMostConflicts;
}

bool Manager::write(const cpu::Write& write, cpu::ManagedContainer& managed) {
  const kernel::CpuCgroup& cgroup = cgroups_.at(write.id);
  const Result<void> written = cgroup.write_cpus(write.cpus);
  if (written) {
    managed.present = write.cpus;
    conflicts_[write.id].written = write.cpus;
    return true;
  }
  managed.phase = has_ended(written.error()) ? cpu::Phase::ended : cpu::Phase::unknown;
  const Result<cpu::CpuSet> present = cgroup.read_cpus();
  managed.present = present ? std::optional(*present) : std::nullopt;
  if (managed.phase == cpu::Phase::unknown) {
    note_problem(write.id, written.error().message);
  }
  return false;
}

// A line for each container with CPUs of its own, and one for all that are in the pool.
void Manager::log_writes(const cpu::State& state, const std::vector<cpu::Write>& writes) const {
  std::size_t in_pool = 0;
  for (const cpu::Write& write : writes) {
    if (owns_cpus(state, write.owner) && !write.is_intermediate) {
      settings_.log("cpus-assigned cgroup=" + write.id + " cpus=" + to_string(write.cpus), false);
    } else {
      ++in_pool;
    }
  }
  if (in_pool > 0) {
    settings_.log("cpus-shared containers=" + std::to_string(in_pool) + " cpus=" + to_string(state.shared), false);
  }
}

// After writes that failed the rest is planned again: what depends on them must wait.
void Manager::carry_out(const cpu::State& state, std::vector<cpu::ManagedContainer>& managed) {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < managed.size(); ++i) {
    places[managed[i].id] = i;
  }
  bool is_done = false;
  for (std::size_t round = 0; round <= managed.size() && !is_done; ++round) {
    const cpu::Reconciliation plan = plan_reconcile(state, managed);
    std::vector<cpu::Write> written;
    is_done = true;
    // CPUs that a container was to leave and has not left: of those with CPUs of their own, and of the others.
    cpu::CpuSet kept_by_owners;
    cpu::CpuSet kept_by_others;
    for (const cpu::Write& one : plan.writes) {
      const bool owns = owns_cpus(state, one.owner);
      cpu::ManagedContainer& container = managed[places.at(one.id)];
      const bool waits = container.phase != cpu::Phase::running ||
                         one.cpus.overlaps(owns ? kept_by_owners | kept_by_others : kept_by_owners);
      if (!waits && write(one, container)) {
        written.push_back(one);
        continue;
      }
      is_done = false;
      (owns ? kept_by_owners : kept_by_others) |= container.present.value_or(machine_.online);
    }
    log_writes(state, written);
    if (is_done) {
      for (const cpu::Skipped& skipped : plan.skipped) {
        problems_.try_emplace(skipped.id, skipped.why);
      }
    }
  }
}

// What goes with exclusive CPUs: no quota of CPU time, as kubelet does, and memory of the same NUMA nodes.
void Manager::follow_one(const cpu::State& state, const host::CpuTenant& tenant, const kernel::CpuCgroup& cgroup,
                         const std::optional<cpu::CpuSet>& present) {
  const cpu::CpuSet* const own = find_entry(state, tenant.tenant.owner);
  Result<void> done = follow_quota(tenant, cgroup, own, present);
  if (done && settings_.cpus.moves_memory) {
    done = follow_memory(tenant, cgroup, own);
  }
  if (!done && !has_ended(done.error())) {
    problems_.try_emplace(tenant.tenant.id, done.error().message);
  }
}

// One that neither asks for CPUs nor has lost its limit by them is left alone.
Result<void> Manager::follow_quota(const host::CpuTenant& tenant, const kernel::CpuCgroup& cgroup,
                                   const cpu::CpuSet* own, const std::optional<cpu::CpuSet>& present) {
  const std::string& id = tenant.tenant.id;
  if (own == nullptr && !tenant.tenant.request && !unlimited_.contains(id)) {
    return {};
  }
  // Without a limit it may only be on CPUs that no other container has.
  const bool has_own = own != nullptr && !own->empty();
  const bool is_unlimited =
      has_own && present == *own && (by_hand_.contains(tenant.tenant.owner) || !is_limited(tenant, *own));
  if (is_unlimited) {
    unlimited_.insert(id);
    return remove_quota(tenant, cgroup);
  }
  TRY(restore_quota(tenant, cgroup));
  unlimited_.erase(id);
  return {};
}

// Nodes without memory are none: the kernel refuses them.
cpu::CpuSet Manager::memory_near(const cpu::CpuSet& cpus) const {
  const cpu::CpuSet nodes = numbers_of(numa_nodes_of(machine_.layout->topology, cpus));
  return nodes & kernel::read_nodes_with_memory(host_).value_or(nodes);
}

// A container that loses its CPUs has the memory of its configuration again, or what the cgroup above it allows.
Result<void> Manager::follow_memory(const host::CpuTenant& tenant, const kernel::CpuCgroup& cgroup,
                                    const cpu::CpuSet* own) {
  const std::string& id = tenant.tenant.id;
  if (own == nullptr && !memory_moved_.contains(id)) {
    return {};
  }
  const bool has_own = own != nullptr && !own->empty();
  std::string nodes = to_string(tenant.memory_nodes.value_or(cpu::CpuSet()));
  if (has_own) {
    memory_moved_.insert(id);
    const cpu::CpuSet near = memory_near(*own);
    nodes = to_string(near & tenant.memory_nodes.value_or(near));
  } else if (nodes.empty()) {
    nodes = TRY(cgroup.read_memory_nodes_above());
  }
  if (!nodes.empty() && TRY(cgroup.read_memory_nodes()) != nodes) {
    TRY(cgroup.write_memory_nodes(nodes));
  }
  if (!has_own) {
    memory_moved_.erase(id);
  }
  return {};
}

Result<void> Manager::remove_quota(const host::CpuTenant& tenant, const kernel::CpuCgroup& cgroup) {
  TRY(cgroup.remove_quota());
  return is_in_pod(tenant) ? cgroup.remove_quota_of_pod() : Result<void>();
}

// The limit of its configuration. A pod's container that was created with CPUs of its own has "no limit" there: it gets
// its request, which is its limit too. Kubelet without limits writes none at all.
Result<void> Manager::restore_quota(const host::CpuTenant& tenant, const kernel::CpuCgroup& cgroup) {
  kernel::CpuQuota quota{tenant.time.quota.value_or(0), tenant.time.period.value_or(kPeriod)};
  if (quota.amount < 0 && is_in_pod(tenant) && tenant.tenant.request) {
    quota.amount = std::int64_t(tenant.tenant.request->count * quota.period);
  }
  return quota.amount > 0 ? cgroup.restore_quota(quota) : Result<void>();
}

// A unit that keeps the CPUs at systemd's next reload. A runtime tells systemd of the cpuset in a container's
// configuration: one without CPUs of its own would have those again.
void Manager::follow_unit(const host::CpuTenant& tenant, const kernel::CpuCgroup& cgroup, bool has_own,
                          const cpu::CpuSet& cpus) {
  const std::optional<std::string>& unit = tenant.container.unit;
  if (!cgroup.is_v2() || !unit || base_name(tenant.container.cgroup) != *unit) {
    return;
  }
  Result<void> kept;
  if ((has_own || tenant.has_cpuset) && !cpus.empty() && systemd::is_running(host_)) {
    units_.insert(*unit);
    kept = systemd::write_allowed_cpus(host_, *unit, cpus);
  } else if (units_.erase(*unit) > 0) {
    kept = systemd::remove_allowed_cpus(host_, *unit);
  }
  if (!kept) {
    problems_.try_emplace(tenant.tenant.id, "systemd's next reload may change its CPUs: " + kept.error().message);
  }
}

void Manager::follow(const cpu::State& state, const Tenants& tenants) {
  quota_files_.clear();
  const cpu::State forced = in_force(state);
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    if (const auto cgroup = cgroups_.find(tenants[i].tenant.id); cgroup != cgroups_.end()) {
      const bool has_own = owns_cpus(forced, tenants[i].tenant.owner);
      follow_unit(tenants[i], cgroup->second, has_own, target_of(forced, managed_[i]));
      follow_one(state, tenants[i], cgroup->second, managed_[i].present);
      if (const auto file = cgroup->second.quota_file(); file && has_own) {
        quota_files_.insert(*file);
      }
    }
  }
  std::erase_if(units_, [&](const std::string& unit) {
    const bool is_alive =
        std::ranges::any_of(tenants, [&unit](const host::CpuTenant& one) { return one.container.unit == unit; });
    return !is_alive && systemd::remove_allowed_cpus(host_, unit);
  });
  const cpu::CpuSet without_irqs = settings_.cpus.moves_irqs ? given_cpus(state) : cpu::CpuSet();
  // Interrupts appear later too, and irqbalance moves them.
  const std::uint64_t now = settings_.clock();
  const bool is_due = !without_irqs.empty() && now - irqs_at_ >= kIrqTime;
  if (!moved_irqs_ || *moved_irqs_ != without_irqs || is_due) {
    irqs_at_ = now;
    const cpu::CpuSet released = moved_irqs_.value_or(cpu::CpuSet()) - without_irqs;
    if (const Result<void> moved = keep_irqs_away(host_, settings_.directory, without_irqs, released); !moved) {
      settings_.log("irqs error=" + quote(moved.error().message), true);
    }
    moved_irqs_ = without_irqs;
  }
}

}  // namespace hf::cpus
