#include "services/cpus/manager.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <set>
#include <thread>
#include <tuple>

#include <fcntl.h>
#include <sys/file.h>

#include "adapters/kube/checkpoint.h"
#include "adapters/systemd/allowed_cpus.h"
#include "adapters/systemd/unit.h"
#include "core/base/text.h"
#include "kernel/files/file.h"
#include "services/cpus/irqs.h"
#include "services/cpus/state.h"

namespace hf::cpus {
namespace {

constexpr std::chrono::milliseconds kShortLimit{30};    // where a container's creation waits for us
constexpr std::uint64_t kContestTime = 60'000'000'000;  // 60 s
constexpr std::size_t kMostContests = 3;                // in that time: then the other one is named, not fought

Result<kernel::Fd> lock_directory(const std::string& directory, std::chrono::milliseconds limit) {
  TRY(kernel::make_directories(AT_FDCWD, directory));
  const std::string path = directory + "/lock";
  kernel::Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) {
    return fail_errno(errno, "open " + path);
  }
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) < 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return fail_errno(errno, "lock " + path);
    }
    if (std::chrono::steady_clock::now() > deadline) {
      return fail(std::errc::timed_out, "lock " + path + ": another process holds it");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return file;
}

Result<void> check_kubelet(const kernel::Host& host) {
  const Result<std::string> text = kernel::read_text(host.root.get(), kernel::below_root(kKubeletState));
  const Result<kube::CpuState> state = text ? kube::parse_cpu_state(*text) : Result<kube::CpuState>(kube::CpuState());
  if (state && state->policy == "static") {
    return fail(std::errc::operation_not_permitted,
                std::string("kubelet assigns CPUs itself (") + kKubeletState +
                    ": policy static); start it with --cpu-manager-policy=none and remove that file");
  }
  return {};
}

bool has_ended(const Error& error) {
  return error.code == std::errc::no_such_device || error.code == std::errc::no_such_file_or_directory;
}

bool is_exclusive(const cpu::State& state, const cpu::Owner& owner) {
  const cpu::CpuSet* const own = find_entry(state, owner);
  return own != nullptr && !own->empty();
}

std::vector<cpu::NumaId> nodes_of(const cpu::Topology& topology, const cpu::CpuSet& cpus) {
  std::set<cpu::NumaId> nodes;
  for (const cpu::Cpu& one : topology.cpus) {
    if (cpus.contains(one.id)) {
      nodes.insert(one.numa);
    }
  }
  return {nodes.begin(), nodes.end()};
}

cpu::CpuSet numbers_of(const std::vector<cpu::NumaId>& nodes) {
  cpu::CpuSet numbers;
  for (const cpu::NumaId node : nodes) {
    numbers.add(node.value);
  }
  return numbers;
}

std::optional<std::uint32_t> farthest(const cpu::Topology& topology, const std::vector<cpu::NumaId>& devices,
                                      const std::vector<cpu::NumaId>& nodes) {
  std::optional<std::uint32_t> most;
  for (const cpu::NumaId node : devices.empty() ? std::vector<cpu::NumaId>() : nodes) {
    std::uint32_t nearest = ~0U;
    for (const cpu::NumaId device : devices) {
      nearest = std::min(nearest, distance(topology, device, node));
    }
    most = std::max(most.value_or(0), nearest);
  }
  return most;
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
  TRY(check_kubelet(host_));
  const cpu::CpuSet online = TRY(kernel::read_online_cpus(host_));
  if (machine_.layout && online == machine_.online) {
    return {};
  }
  auto layout = std::make_unique<cpu::Layout>(TRY(settings_.topology(host_)));
  const cpu::CpuSet listed = settings_.cpus.reserved & layout->cpus;
  const std::optional<std::uint32_t> count =
      listed.empty() ? std::optional(settings_.cpus.reserved_count) : std::nullopt;
  const cpu::Policy policy = TRY(make_policy(*layout, settings_.cpus.options, listed, count));
  machine_ = {online, std::move(layout), policy};
  for (auto& [id, contest] : contests_) {
    contest.written = {};  // the kernel itself changes cpusets then
  }
  return {};
}

void Manager::note_problem(const std::string& id, const std::string& problem) { problems_[id] = problem; }

void Manager::open_cgroups(const Tenants& tenants) {
  std::set<std::string> alive;
  gone_.clear();
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
    Result<kernel::CpuCgroup> opened = kernel::CpuCgroup::open(host_, mounts_, tenant.container);
    if (opened) {  // for the first time, or again: a container that is started again has another cgroup
      cgroups_.insert_or_assign(id, *std::move(opened));
    } else if (has_ended(opened.error())) {
      gone_.insert(id);
    } else {
      note_problem(id, opened.error().message);
    }
  }
  const auto is_gone = [&alive](const auto& entry) { return !alive.contains(entry.first); };
  std::erase_if(cgroups_, is_gone);
  std::erase_if(contests_, is_gone);
  std::erase_if(writers_, is_gone);
}

std::vector<cpu::ManagedContainer> Manager::read_managed(const Tenants& tenants) const {
  std::vector<cpu::ManagedContainer> managed;
  managed.reserve(tenants.size());
  for (const host::CpuTenant& tenant : tenants) {
    cpu::ManagedContainer one{.owner = tenant.tenant.owner, .id = tenant.tenant.id, .present = {}};
    one.can_own = tenant.tenant.request || (!settings_.cpus.options.strict_reservation && !tenant.confined);
    one.confined = tenant.confined;
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

// A container whose cpuset is neither the one that was written last nor what the state says has been changed by
// somebody else. (Other managers and commands change state and cpusets together.)
void Manager::judge_contests(const cpu::State& recorded, std::vector<cpu::ManagedContainer>& managed) {
  const std::uint64_t now = settings_.clock();
  for (cpu::ManagedContainer& one : managed) {
    const auto found = contests_.find(one.id);
    if (found == contests_.end() || !one.present) {
      continue;
    }
    Contest& contest = found->second;
    std::erase_if(contest.at, [now](std::uint64_t at) { return now - at > kContestTime; });
    if (*one.present == target_of(recorded, one)) {
      contest.written = *one.present;
    } else if (!contest.written.empty() && *one.present != contest.written) {
      contest.at.push_back(now);
      contest.written = *one.present;
    }
    if (contest.at.size() >= kMostContests) {
      const auto writer = writers_.find(one.id);
      one.phase = cpu::Phase::contested;
      note_problem(one.id, (writer == writers_.end() ? std::string("another program") : writer->second) +
                               " keeps setting its cpuset to " + to_string(*one.present) + "; it is left alone");
    }
  }
}

bool Manager::note_writer(std::uint64_t file, const std::function<std::string()>& writer) {
  const auto found = std::ranges::find_if(cgroups_, [file](const auto& entry) { return entry.second.file() == file; });
  if (found != cgroups_.end()) {
    writers_[found->first] = writer();
  }
  return found != cgroups_.end();
}

bool Manager::write(const cpu::Write& write, cpu::ManagedContainer& managed) {
  const kernel::CpuCgroup& cgroup = cgroups_.at(write.id);
  const Result<void> written = cgroup.write_cpus(write.cpus);
  if (written) {
    managed.present = write.cpus;
    contests_[write.id].written = write.cpus;
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
    if (is_exclusive(state, write.owner) && !write.is_intermediate) {
      settings_.log("cpus-assigned cgroup=" + write.id + " cpus=" + to_string(write.cpus), false);
    } else {
      ++in_pool;
    }
  }
  if (in_pool > 0) {
    settings_.log("cpus-shared containers=" + std::to_string(in_pool) + " cpus=" + to_string(state.shared), false);
  }
}

// After a write that failed the rest is planned again: what depends on it must wait.
void Manager::carry_out(const cpu::State& state, std::vector<cpu::ManagedContainer>& managed) {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < managed.size(); ++i) {
    places[managed[i].id] = i;
  }
  bool is_done = false;
  for (std::size_t round = 0; round <= managed.size() && !is_done; ++round) {
    const cpu::Reconciliation plan = plan_reconcile(state, managed);
    std::vector<cpu::Write> written;
    is_done = std::ranges::all_of(plan.writes, [&](const cpu::Write& one) {
      const bool is_written = write(one, managed[places.at(one.id)]);
      written.insert(written.end(), is_written ? 1 : 0, one);
      return is_written;
    });
    log_writes(state, written);
    if (is_done) {
      for (const cpu::Skipped& skipped : plan.skipped) {
        problems_.try_emplace(skipped.id, skipped.why);
      }
    }
  }
}

// What goes with exclusive CPUs: no quota of CPU time, as kubelet does, memory of the same NUMA nodes, and a unit that
// keeps them at systemd's next reload. A container that has asked for CPUs and has none has its quota again.
void Manager::follow_one(const cpu::State& state, const host::CpuTenant& tenant, const kernel::CpuCgroup& cgroup) {
  const cpu::CpuSet* const own = find_entry(state, tenant.tenant.owner);
  const bool has_own = own != nullptr && !own->empty();
  if (const Result<void> kept = follow_unit(tenant, cgroup, has_own ? own : nullptr); !kept) {
    problems_.try_emplace(tenant.tenant.id, "systemd's next reload may change its CPUs: " + kept.error().message);
  }
  if (own == nullptr && !tenant.tenant.request) {
    return;
  }
  const std::int64_t quota = tenant.time.quota.value_or(-1);
  const bool is_limited = quota > 0 && !has_own;
  Result<void> done =
      cgroup.write_quota(is_limited ? std::optional(quota) : std::nullopt, tenant.time.period.value_or(100'000));
  if (done && has_own && tenant.container.pod && !tenant.container.pod->uid.empty()) {
    done = cgroup.remove_quota_of_pod();
  }
  if (done && settings_.cpus.moves_memory) {
    const cpu::Topology& topology = machine_.layout->topology;
    const std::string nodes = to_string(numbers_of(has_own ? nodes_of(topology, *own) : numa_nodes(topology)));
    const Result<std::string> now = cgroup.read_memory_nodes();
    done = now && *now == nodes ? done : cgroup.write_memory_nodes(nodes);
  }
  if (!done && !has_ended(done.error())) {
    problems_.try_emplace(tenant.tenant.id, done.error().message);
  }
}

Result<void> Manager::follow_unit(const host::CpuTenant& tenant, const kernel::CpuCgroup& cgroup,
                                  const cpu::CpuSet* own) {
  const std::optional<std::string>& unit = tenant.container.unit;
  const bool has_unit = cgroup.is_v2() && unit && base_name(tenant.container.cgroup) == *unit;
  if (has_unit && own != nullptr && systemd::is_running(host_)) {
    units_.insert(*unit);
    return systemd::write_allowed_cpus(host_, *unit, *own);
  }
  return has_unit && units_.erase(*unit) > 0 ? systemd::remove_allowed_cpus(host_, *unit) : Result<void>();
}

void Manager::follow(const cpu::State& state, const Tenants& tenants) {
  for (const host::CpuTenant& tenant : tenants) {
    if (const auto cgroup = cgroups_.find(tenant.tenant.id); cgroup != cgroups_.end()) {
      follow_one(state, tenant, cgroup->second);
    }
  }
  std::erase_if(units_, [&](const std::string& unit) {
    const bool is_alive =
        std::ranges::any_of(tenants, [&unit](const host::CpuTenant& one) { return one.container.unit == unit; });
    return !is_alive && systemd::remove_allowed_cpus(host_, unit);
  });
  const cpu::CpuSet given = given_cpus(state);
  if (settings_.cpus.moves_irqs && (!moved_irqs_ || *moved_irqs_ != given)) {
    if (const Result<void> moved = keep_irqs_away(host_, settings_.directory, given); !moved) {
      settings_.log("irqs error=" + quote(moved.error().message), true);
    }
    moved_irqs_ = given;
  }
}

void Manager::note_changes_of_others() {
  std::string stamp = kernel::stamp_of(AT_FDCWD, settings_.directory + "/" + kStateFile);
  if (stamp != stamp_) {
    stamp_ = std::move(stamp);
    changed_at_ = settings_.clock();
  }
}

Result<void> Manager::transact(const Tenants& tenants, const Change& change, Look look) {
  const kernel::Fd lock =
      TRY(lock_directory(settings_.directory, look == Look::always ? settings_.lock_limit : kShortLimit));
  TRY(refresh_machine());
  problems_.clear();
  open_cgroups(tenants);
  const cpu::State before = TRY(load(tenants));
  note_changes_of_others();
  cpu::State state = adapt(machine_.policy, before);
  Result<void> changed = change(state);
  state.reuse = {};
  if (look == Look::if_changed && state == before) {
    return changed;
  }
  if (changed && state != before) {
    changed = save(state);
  }
  if (!changed) {
    state = adapt(machine_.policy, before);  // nothing is done that is not recorded
  }
  managed_ = read_managed(tenants);
  judge_contests(in_force(adapt(machine_.policy, before)), managed_);
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

std::vector<cpu::Tenant> Manager::values_of(const Tenants& tenants) {
  std::vector<cpu::Tenant> values;
  values.reserve(tenants.size());
  for (const host::CpuTenant& tenant : tenants) {
    cpu::Tenant& value = values.emplace_back(tenant.tenant);
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
  TRY(transact(tenants, [&](cpu::State& state) -> Result<void> {
    const cpu::Tenant* const tenant = find_owner(tenants, owner);
    if (tenant == nullptr) {
      return fail(std::errc::no_such_process, "the container has ended");
    }
    given = TRY(cpu::assign_one(machine_.policy, state, *tenant, request));
    return {};
  }));
  return given;
}

Result<void> Manager::release(const Tenants& tenants, const cpu::Owner& owner) {
  return transact(tenants, [&](cpu::State& state) -> Result<void> {
    cpu::release(state, owner);
    return {};
  });
}

Result<Manager::Prepared> Manager::prepare(const Tenants& tenants, const cpu::Tenant& created) {
  Prepared prepared;
  cpu::CpuSet pool;
  TRY(transact(
      tenants,
      [&](cpu::State& state) -> Result<void> {
        state = cpu::assign(machine_.policy, std::move(state), {created}, cpu::Others::kept).state;
        prepared.cpus = cpus_for(in_force(state), created.owner);
        prepared.is_exclusive = is_exclusive(state, created.owner);
        pool = state.shared;
        return {};
      },
      Look::if_changed));
  if (prepared.is_exclusive && is_used_by_others(prepared.cpus, created.owner)) {
    return Prepared{.cpus = pool, .memory_nodes = "", .is_exclusive = false};  // it moves when they are free
  }
  if (prepared.is_exclusive && settings_.cpus.moves_memory) {
    prepared.memory_nodes = to_string(numbers_of(nodes_of(machine_.layout->topology, prepared.cpus)));
  }
  return prepared;
}

// Some could not be moved away, or it is not known where they are.
bool Manager::is_used_by_others(const cpu::CpuSet& cpus, const cpu::Owner& owner) const {
  return std::ranges::any_of(managed_, [&](const cpu::ManagedContainer& one) {
    return one.owner != owner && one.phase != cpu::Phase::ended && (!one.present || one.present->overlaps(cpus));
  });
}

Result<report::CpuStatus> Manager::read_status(const Tenants& tenants) {
  problems_.clear();
  open_cgroups(tenants);
  const std::string file = settings_.directory + "/" + kStateFile;
  const cpu::State state =
      adapt(machine_.policy, kernel::exists(AT_FDCWD, file) ? TRY(read_state(file)) : cpu::State());
  note_refusals(cpu::assign(machine_.policy, state, values_of(tenants), cpu::Others::kept).refusals, tenants);
  publish(state, tenants, read_managed(tenants));
  return status_;
}

void Manager::publish(const cpu::State& state, const Tenants& tenants,
                      const std::vector<cpu::ManagedContainer>& managed) {
  status_ = {};
  status_.online = machine_.online;
  status_.pool = state.shared;
  status_.reserved = machine_.policy.reserved;
  status_.topology = machine_.layout->topology;
  status_.state = state;
  const cpu::State wanted = in_force(state);
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    const host::CpuTenant& tenant = tenants[i];
    report::CpuContainer one;
    one.title = title_of(tenant.container);
    one.id = tenant.container.id.value;
    one.engine = tenant.container.engine;
    one.is_exclusive = is_exclusive(state, tenant.tenant.owner);
    one.requested = tenant.tenant.request ? tenant.tenant.request->count : 0;
    one.cpus = target_of(wanted, managed[i]);
    one.present = managed[i].present.value_or(cpu::CpuSet());
    one.nodes = nodes_of(status_.topology, one.cpus);
    one.device_nodes = tenant.tenant.device_nodes;
    one.distance = farthest(status_.topology, one.device_nodes, one.nodes);
    const auto problem = problems_.find(tenant.tenant.id);
    one.problem = problem == problems_.end() ? "" : problem->second;
    if (one.problem.empty() && managed[i].present && one.present != one.cpus) {
      one.problem = "its cpuset is " + to_string(one.present);
    }
    if (one.problem.empty() && one.requested > 0 && !one.is_exclusive) {
      one.problem = find_entry(state, tenant.tenant.owner) != nullptr ? "its CPUs were taken back by hand"
                                                                      : "it has no CPUs of its own yet";
    }
    status_.containers.push_back(std::move(one));
  }
  std::ranges::sort(status_.containers, {},
                    [](const report::CpuContainer& one) { return std::tuple(!one.is_exclusive, one.title, one.id); });
  for (const auto& [id, problem] : problems_) {
    if (const auto known = logged_.find(id); known == logged_.end() || known->second != problem) {
      settings_.log("cpus cgroup=" + id + " problem=" + quote(problem), true);
    }
  }
  logged_ = problems_;
}

}  // namespace hf::cpus
