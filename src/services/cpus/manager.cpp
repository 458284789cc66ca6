#include "services/cpus/manager.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>

#include <fcntl.h>

#include "adapters/kube/checkpoint.h"
#include "adapters/systemd/allowed_cpus.h"
#include "core/base/text.h"
#include "kernel/files/file.h"
#include "kernel/files/lock.h"
#include "services/cpus/state.h"
#include "services/cpus/status.h"

namespace hf::cpus {
namespace {

constexpr std::chrono::milliseconds kShortLimit{30};  // where a container's creation waits for us

Result<kernel::Fd> lock_directory(const std::string& directory, std::chrono::milliseconds limit) {
  TRY(kernel::make_directories(AT_FDCWD, directory));
  const std::string path = directory + "/lock";
  kernel::Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) {
    return fail_errno(errno, "open " + path);
  }
  const Result<void> locked = kernel::lock_within(file, limit);
  return locked ? Result<kernel::Fd>(std::move(file))
                : fail(locked.error().code, "lock " + path + ": " + locked.error().message);
}

Result<void> check_kubelet(const kernel::Host& host, const std::string& file) {
  const Result<std::string> text = kernel::read_text(host.root.get(), kernel::below_root(file));
  const Result<kube::CpuState> state = text ? kube::parse_cpu_state(*text) : Result<kube::CpuState>(kube::CpuState());
  if (state && state->policy == "static") {
    return fail(std::errc::operation_not_permitted,
                "kubelet assigns CPUs itself (" + file +
                    ": policy static); start it with --cpu-manager-policy=none and remove that file");
  }
  return {};
}

const cpu::Tenant* find_owner(const Tenants& tenants, const cpu::Owner& owner) {
  const auto found =
      std::ranges::find(tenants, owner, [](const host::CpuTenant& tenant) { return tenant.tenant.owner; });
  return found == tenants.end() ? nullptr : &found->tenant;
}

}  // namespace

Manager::Manager(const kernel::Host& host, ManagerSettings settings)
    : host_(host), settings_(std::move(settings)), mounts_(kernel::read_cpu_mounts(host)) {}

Result<Manager> Manager::open(const kernel::Host& host, ManagerSettings settings) {
  Manager manager(host, std::move(settings));
  if (manager.mounts_.cpuset.empty() && manager.mounts_.v2.empty()) {
    return fail(std::errc::not_supported, "no hierarchy with the cpuset controller is mounted");
  }
  TRY(manager.refresh_machine());
  manager.stamp_ = kernel::stamp_of(AT_FDCWD, manager.settings_.directory + "/" + kStateFile);
  manager.units_ = systemd::units_with_allowed_cpus(host);
  return manager;
}

// The topology is read again when CPUs go offline or come back.
Result<void> Manager::refresh_machine() {
  TRY(check_kubelet(host_, settings_.kubelet_state));
  const cpu::CpuSet online = TRY(kernel::read_online_cpus(host_));
  if (machine_.layout && online == machine_.online) {
    return {};
  }
  auto layout = std::make_unique<cpu::Layout>(TRY(settings_.topology(host_)));
  const cpu::CpuSet listed = settings_.cpus.reserved & layout->cpus;
  if (const cpu::CpuSet absent = settings_.cpus.reserved - layout->cpus; !absent.empty()) {
    settings_.log("cpus-reserved not-here=" + to_string(absent), false);
  }
  const std::optional<std::uint32_t> count =
      listed.empty() ? std::optional(settings_.cpus.reserved_count) : std::nullopt;
  const cpu::Policy policy = TRY(make_policy(*layout, settings_.cpus.options, listed, count));
  const cpu::CpuSet before = machine_.policy.reserved;
  machine_ = {online, std::move(layout), policy};
  keep_reserved(before.empty() ? policy.reserved : before, {});
  for (auto& [id, conflict] : conflicts_) {
    conflict.written = {};  // the kernel itself changes cpusets then
  }
  return {};
}

// CPUs that are reserved by number stay reserved while they are online, and take the place of no owner.
void Manager::keep_reserved(const cpu::CpuSet& kept, const cpu::CpuSet& owned) {
  if (!settings_.cpus.reserved.overlaps(machine_.layout->cpus)) {
    machine_.policy = cpu::keep_reserved(machine_.policy, kept, owned);
  }
}

void Manager::note_problem(const std::string& id, const std::string& problem) { problems_[id] = problem; }

Result<cpu::State> Manager::load(const Tenants& tenants) {
  const std::string file = settings_.directory + "/" + kStateFile;
  if (!kernel::exists(AT_FDCWD, file)) {
    return cpu::State();
  }
  Result<cpu::State> state = read_state(file);
  const Result<void> owners = state ? check_owners(machine_.policy, adapt(machine_.policy, *state)) : Result<void>();
  if (state && owners) {
    return state;
  }
  const std::string why = state ? owners.error().message : state.error().message;
  const Result<cpu::Rebuilt> rebuilt = cpu::rebuild(machine_.policy, read_managed(tenants));
  const RebuiltFile replaced = TRY(replace_state(file, rebuilt.value_or(cpu::Rebuilt())));
  settings_.log("cpu-state-rebuilt error=" + quote(why) + " kept=" + quote(replaced.kept_aside) +
                    (rebuilt ? "" : " empty-because=" + quote(rebuilt.error().message)),
                true);
  return replaced.rebuilt.state;
}

Result<void> Manager::save(const cpu::State& state) {
  const std::string file = settings_.directory + "/" + kStateFile;
  TRY(write_state(file, state));
  stamp_ = kernel::stamp_of(AT_FDCWD, file);
  changed_at_ = settings_.clock();
  return {};
}

// Marks of owners without an entry say nothing: their containers have ended, or the entry was never written.
ByHand Manager::read_marked(const cpu::State& state) const {
  ByHand owners = read_by_hand(settings_.directory);
  std::erase_if(owners, [&](const cpu::Owner& owner) { return find_entry(state, owner) == nullptr; });
  return owners;
}

cpu::Tenant Manager::marked(cpu::Tenant tenant) const {
  tenant.is_by_hand = by_hand_.contains(tenant.owner);
  tenant.confined = confined(tenant);
  return tenant;
}

std::optional<cpu::CpuSet> Manager::confined(const cpu::Tenant& tenant) const {
  const auto above = above_.find(tenant.id);
  if (above == above_.end()) {
    return tenant.confined;
  }
  return tenant.confined ? *tenant.confined & above->second : above->second;
}

void Manager::mark(const cpu::Owner& owner, bool is_by_hand) {
  if (is_by_hand) {
    by_hand_.insert(owner);
  } else {
    by_hand_.erase(owner);
  }
}

// The marks come first: one without an entry says nothing.
Result<void> Manager::record(const cpu::State& before, const cpu::State& changed) {
  std::erase_if(by_hand_, [&](const cpu::Owner& owner) { return find_entry(changed, owner) == nullptr; });
  if (by_hand_ != read_by_hand(settings_.directory)) {
    TRY(write_by_hand(settings_.directory, by_hand_));
  }
  return changed == before ? Result<void>() : save(changed);
}

void Manager::note_changes_of_others() {
  std::string stamp = kernel::stamp_of(AT_FDCWD, settings_.directory + "/" + kStateFile);
  if (stamp != stamp_) {
    stamp_ = std::move(stamp);
    changed_at_ = settings_.clock();
  }
}

Result<void> Manager::transact(const Tenants& tenants, const Change& change, Reconcile when) {
  const kernel::Fd lock =
      TRY(lock_directory(settings_.directory, when == Reconcile::always ? settings_.lock_limit : kShortLimit));
  TRY(refresh_machine());
  problems_.clear();
  open_cgroups(tenants);
  const cpu::State before = TRY(load(tenants));
  keep_reserved(machine_.policy.reserved, given_cpus(before));
  by_hand_ = read_marked(before);
  note_changes_of_others();
  const cpu::State here = adapt(machine_.policy, before);
  cpu::State state = here;
  Result<void> changed = change(state);
  state.reuse = {};
  const cpu::State recorded = with_offline_cpus(state, here, before, alive_owners(tenants));
  if (when == Reconcile::if_changed && recorded == before) {
    return changed;
  }
  if (changed) {
    changed = record(before, recorded);
  }
  if (!changed) {
    state = here;  // nothing is done that is not recorded
  }
  managed_ = read_managed(tenants);
  judge_conflicts(in_force(here), managed_);
  carry_out(in_force(state), managed_);
  follow(state, tenants);
  publish(state, tenants, managed_);
  return changed;
}

Result<void> Manager::reconcile(const Tenants& tenants, const Ended& ended) {
  return transact(tenants, [&](cpu::State& state) -> Result<void> {
    // Another manager, or a command, may have served a container that a census which began before does not have.
    wants_census_ = ended.census_at && *ended.census_at <= changed_at_;
    for (const cpu::Owner& owner : ended.owners) {
      remove(state, owner);
    }
    std::vector<cpu::Tenant> all = values_of(tenants);
    std::ranges::transform(expected_, std::back_inserter(all),
                           [](const cpu::Owner& owner) { return cpu::Tenant{owner, "", std::nullopt}; });
    const bool is_complete = ended.census_at && !wants_census_;
    cpu::Assigned assigned =
        cpu::assign(machine_.policy, std::move(state), all, is_complete ? cpu::Others::removed : cpu::Others::kept);
    state = std::move(assigned.state);
    note_refusals(assigned.refusals, tenants);
    return {};
  });
}

std::set<cpu::Owner> Manager::alive_owners(const Tenants& tenants) const {
  std::set<cpu::Owner> owners = expected_;
  std::ranges::transform(tenants, std::inserter(owners, owners.end()),
                         [](const host::CpuTenant& tenant) { return tenant.tenant.owner; });
  return owners;
}

std::vector<cpu::Tenant> Manager::values_of(const Tenants& tenants) {
  std::vector<cpu::Tenant> values;
  values.reserve(tenants.size());
  for (const host::CpuTenant& tenant : tenants) {
    cpu::Tenant& value = values.emplace_back(marked(tenant.tenant));
    const bool is_in_pod = tenant.container.pod && !tenant.container.pod->uid.empty();
    if (value.request && !is_in_pod && settings_.cpus.most && value.request->count > *settings_.cpus.most) {
      note_problem(value.id, "it asks for " + std::to_string(value.request->count) + " CPUs, and cpus.most allows " +
                                 std::to_string(*settings_.cpus.most));
      value.request.reset();
    }
  }
  return values;
}

void Manager::note_refusals(const std::vector<cpu::Refusal>& refusals, const Tenants& tenants) {
  for (const cpu::Refusal& refusal : refusals) {
    if (const cpu::Tenant* const tenant = find_owner(tenants, refusal.owner)) {
      note_problem(tenant->id, refusal.why);
    }
  }
}

Result<cpu::CpuSet> Manager::assign(const Tenants& tenants, const cpu::Owner& owner, const cpu::CpuRequest& request) {
  cpu::CpuSet given;
  std::optional<cpu::CpuSet> before;
  bool was_by_hand = false;
  TRY(transact(tenants, [&](cpu::State& state) -> Result<void> {
    const cpu::Tenant* const tenant = find_owner(tenants, owner);
    if (tenant == nullptr) {
      return fail(std::errc::no_such_process, "the container has ended");
    }
    const cpu::CpuSet* const entry = find_entry(state, owner);
    before = entry == nullptr ? std::nullopt : std::optional(*entry);
    was_by_hand = by_hand_.contains(owner);
    given = TRY(cpu::assign_one(machine_.policy, state, marked(*tenant), request));
    mark(owner, !tenant->request || tenant->request->count != given.count());
    return {};
  }));
  const auto managed = std::ranges::find(managed_, owner, &cpu::ManagedContainer::owner);
  if (managed != managed_.end() && managed->present == given) {
    return given;
  }
  // What could not be written is not kept: it would take CPUs from others for nothing. It has what it had before.
  const std::string why = problem_of(managed == managed_.end() ? std::string() : managed->id);
  TRY(transact(tenants, [&](cpu::State& state) -> Result<void> {
    remove(state, owner);
    mark(owner, was_by_hand);
    if (before && state.shared.contains(*before)) {
      state.entries[owner] = *before;
      state.shared -= *before;
    }
    return {};
  }));
  return fail(Reason::unavailable, "its cpuset cannot be set" + (why.empty() ? "" : ": " + why));
}

std::string Manager::problem_of(const std::string& id) const {
  const auto found = problems_.find(id);
  return found == problems_.end() ? std::string() : found->second;
}

Result<void> Manager::release(const Tenants& tenants, const cpu::Owner& owner) {
  return transact(tenants, [&](cpu::State& state) -> Result<void> {
    cpu::release(state, owner);
    return {};
  });
}

Result<Manager::Prepared> Manager::prepare(const Tenants& tenants, const cpu::Tenant& created) {
  Prepared prepared;
  Prepared pooled;
  TRY(transact(
      tenants,
      [&](cpu::State& state) -> Result<void> {
        const cpu::Tenant tenant = marked(created);
        state = cpu::assign(machine_.policy, std::move(state), {tenant}, cpu::Others::kept).state;
        pooled = pooled_in(state, tenant.confined);
        prepared = owns_cpus(state, created.owner) ? placement_in(state, created.owner) : pooled;
        return {};
      },
      Reconcile::if_changed));
  if (prepared.is_exclusive && is_used_by_others(prepared.cpus, created.owner)) {
    return pooled;  // it moves when they are free
  }
  return prepared;
}

// An engine must not be told of CPUs that a cgroup above does not allow: on v1 it could not write them, and the
// container would not start.
Manager::Prepared Manager::pooled_in(const cpu::State& state, const std::optional<cpu::CpuSet>& confined) {
  return {.cpus = confined ? state.shared & *confined : state.shared, .memory_nodes = "", .is_exclusive = false};
}

// CPUs that were given by hand are no matter of its request.
Result<Manager::Prepared> Manager::resize(const Tenants& tenants, const cpu::Tenant& resized,
                                          const std::optional<cpu::CpuRequest>& before) {
  TRY(transact(
      tenants,
      [&](cpu::State& state) -> Result<void> {
        const cpu::CpuSet* const entry = find_entry(state, resized.owner);
        const bool has_as_requested =
            before && !by_hand_.contains(resized.owner) && entry != nullptr && entry->count() == before->count;
        if (has_as_requested && !resized.request) {
          remove(state, resized.owner);
        } else if (has_as_requested) {
          TRY(shrink(machine_.policy, state, resized, resized.request->count));
        }
        state = cpu::assign(machine_.policy, std::move(state), {marked(resized)}, cpu::Others::kept).state;
        return {};
      },
      Reconcile::if_changed));
  return placement_of(resized.owner);
}

Manager::Prepared Manager::placement_in(const cpu::State& state, const cpu::Owner& owner) const {
  Prepared placement{
      .cpus = cpus_for(in_force(state), owner), .memory_nodes = "", .is_exclusive = owns_cpus(state, owner)};
  if (placement.is_exclusive && settings_.cpus.moves_memory) {
    placement.memory_nodes = to_string(memory_near(placement.cpus));
  }
  return placement;
}

Manager::Prepared Manager::placement_of(const cpu::Owner& owner) const {
  const auto managed = std::ranges::find(managed_, owner, &cpu::ManagedContainer::owner);
  const bool is_known = managed != managed_.end();
  return is_known && !owns_cpus(status_.state, owner) ? pooled_in(status_.state, managed->confined)
                                                      : placement_in(status_.state, owner);
}

// Some could not be moved away. One without a cpuset, or with one that cannot be read, is named and blocks nobody: it
// would block every CPU for as long as it runs.
bool Manager::is_used_by_others(const cpu::CpuSet& cpus, const cpu::Owner& owner) const {
  return std::ranges::any_of(managed_, [&](const cpu::ManagedContainer& one) {
    return one.owner != owner && blocks_others(one) && one.present && one.present->overlaps(cpus);
  });
}

Result<report::CpuStatus> Manager::read_status(const Tenants& tenants) {
  problems_.clear();
  open_cgroups(tenants);
  const std::string file = settings_.directory + "/" + kStateFile;
  const cpu::State recorded = kernel::exists(AT_FDCWD, file) ? TRY(read_state(file)) : cpu::State();
  keep_reserved(machine_.policy.reserved, given_cpus(recorded));
  const cpu::State state = adapt(machine_.policy, recorded);
  by_hand_ = read_marked(state);
  note_refusals(cpu::assign(machine_.policy, state, values_of(tenants), cpu::Others::kept).refusals, tenants);
  publish(state, tenants, read_managed(tenants));
  return status_;
}

void Manager::publish(const cpu::State& state, const Tenants& tenants,
                      const std::vector<cpu::ManagedContainer>& managed) {
  status_ = status_of(machine_.policy, state, {tenants, managed, problems_});
  status_.online = machine_.online;
  for (const auto& [id, problem] : problems_) {
    if (const auto known = logged_.find(id); known == logged_.end() || known->second != problem) {
      settings_.log("cpus cgroup=" + id + " problem=" + quote(problem), true);
    }
  }
  logged_ = problems_;
}

}  // namespace hf::cpus
