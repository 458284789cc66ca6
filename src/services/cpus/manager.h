// Manager: gives containers exclusive CPUs by writing their cpusets, and nothing else: device rules are never touched.
// Its state is a file. Each call is a transaction on it, under a lock, so that several managers and commands do not
// disturb each other, and one that is killed at any moment leaves nothing that the next call would not finish.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapters/config/config.h"
#include "core/base/result.h"
#include "core/cpu/assign.h"
#include "core/cpu/reconcile.h"
#include "core/report/cpu_report.h"
#include "host/cpu_tenant.h"
#include "kernel/cpu/cpu_cgroup.h"
#include "kernel/cpu/topology.h"
#include "kernel/files/host.h"
#include "services/cpus/marks.h"
#include "services/cpus/state.h"

namespace hf::cpus {

inline constexpr const char* kDirectory = "/run/holdfast/cpus";
inline constexpr const char* kStateFile = "cpu_manager_state";

struct ManagerSettings {
  config::CpuSettings cpus;
  std::string directory = kDirectory;
  std::string kubelet_state = kKubeletState;
  std::function<void(const std::string& line, bool is_warning)> log;
  std::function<std::uint64_t()> clock;  // nanoseconds of CLOCK_MONOTONIC
  std::chrono::milliseconds lock_limit{2000};
  std::function<Result<cpu::Topology>(const kernel::Host&)> topology = kernel::read_topology;
};

using Tenants = std::vector<host::CpuTenant>;

class Manager {
 public:
  // Fails where the CPUs cannot be managed: kubelet's static policy is on, or the settings do not fit the machine.
  static Result<Manager> open(const kernel::Host& host, ManagerSettings settings);

  // Which owners have ended, and give their CPUs back.
  struct Ended {
    std::optional<std::uint64_t> census_at = {};  // those that are no tenants, by a census that began then
    std::vector<cpu::Owner> owners = {};          // these
  };
  // Assigns CPUs to the tenants that ask for them, and writes the cpusets that differ.
  Result<void> reconcile(const Tenants& tenants, const Ended& ended);
  // The state was changed after that census began: which owners have ended is decided by the next one.
  [[nodiscard]] bool wants_census() const { return wants_census_; }

  // A tenant of the last call that a census does not have: it runs, and could not be read.
  [[nodiscard]] bool is_running(const host::CpuTenant& tenant) const;

  // By hand, for one of the tenants.
  Result<cpu::CpuSet> assign(const Tenants& tenants, const cpu::Owner& owner, const cpu::CpuRequest& request);
  Result<void> release(const Tenants& tenants, const cpu::Owner& owner);

  // For a container that does not run yet: its CPUs, or those of the pool. Fails where a lock is not free at once,
  // since its creation must not wait. Until forget(), its CPUs are kept for it although it is no tenant.
  struct Prepared {
    cpu::CpuSet cpus;          // empty: the engine decides, as it may have none of the pool
    std::string memory_nodes;  // "": any
    bool is_exclusive = false;
  };
  Result<Prepared> prepare(const Tenants& tenants, const cpu::Tenant& created);
  // What the cgroup allows in which a container is created, where that is not everything.
  [[nodiscard]] std::optional<cpu::CpuSet> allowed_in(const std::string& cgroup) const;
  // For one whose request was another before.
  Result<Prepared> resize(const Tenants& tenants, const cpu::Tenant& resized,
                          const std::optional<cpu::CpuRequest>& before);
  void expect(const cpu::Owner& owner) { expected_.insert(owner); }
  void forget(const cpu::Owner& owner) { expected_.erase(owner); }
  // Its engine may have written another cpuset since then, and writes one soon: that is no conflict with another
  // program.
  void expect_write_of_engine(const cpu::Owner& owner, std::uint64_t since);
  // The same for one that was created, by the last call.
  [[nodiscard]] Prepared placement_of(const cpu::Owner& owner) const;

  // Reads, and changes nothing.
  Result<report::CpuStatus> read_status(const Tenants& tenants);

  [[nodiscard]] const report::CpuStatus& status() const { return status_; }  // after the last call

  // The hierarchy to watch for writes of others.
  [[nodiscard]] const std::string& cpuset_mount() const { return mounts_.cpuset.empty() ? mounts_.v2 : mounts_.cpuset; }
  // Another process has written to the file with this inode. False: it is the cpuset of no container, or of one that is
  // left alone.
  bool note_writer(std::uint64_t file, const std::function<std::string()>& writer);
  // On v2: it is the limit of CPU time of a container with CPUs of its own. On v1 that is in another hierarchy.
  [[nodiscard]] bool is_quota(std::uint64_t file) const { return quota_files_.contains(file); }

 private:
  using Change = std::function<Result<void>(cpu::State&)>;

  struct Machine {
    cpu::CpuSet online;
    std::unique_ptr<cpu::Layout> layout;
    cpu::Policy policy;
  };
  // How often another program has set another cpuset than ours.
  struct CpusetConflict {
    cpu::CpuSet written;
    std::vector<std::uint64_t> at;
    std::uint64_t ignored_until = 0;
  };

  Manager(const kernel::Host& host, ManagerSettings settings);
  static Prepared pooled_in(const cpu::State& state, const std::optional<cpu::CpuSet>& confined);
  [[nodiscard]] Prepared placement_in(const cpu::State& state, const cpu::Owner& owner) const;

  // if_changed: cpusets are looked at only where the change has changed the state.
  enum class Reconcile : std::uint8_t { always, if_changed };
  Result<void> transact(const Tenants& tenants, const Change& change, Reconcile when = Reconcile::always);
  Result<void> refresh_machine();
  void keep_reserved(const cpu::CpuSet& kept, const cpu::CpuSet& owned);
  void open_cgroups(const Tenants& tenants);
  Result<cpu::State> load(const Tenants& tenants);
  Result<void> record(const cpu::State& before, const cpu::State& changed);
  Result<void> save(const cpu::State& state);
  [[nodiscard]] ByHand read_marked(const cpu::State& state) const;
  [[nodiscard]] cpu::Tenant marked(cpu::Tenant tenant) const;
  [[nodiscard]] std::optional<cpu::CpuSet> confined(const cpu::Tenant& tenant) const;
  void mark(const cpu::Owner& owner, bool is_by_hand);
  void note_changes_of_others();
  [[nodiscard]] bool is_used_by_others(const cpu::CpuSet& cpus, const cpu::Owner& owner) const;
  [[nodiscard]] std::vector<cpu::ManagedContainer> read_managed(const Tenants& tenants) const;
  void judge_conflicts(const cpu::State& recorded, std::vector<cpu::ManagedContainer>& managed);
  void carry_out(const cpu::State& state, std::vector<cpu::ManagedContainer>& managed);
  bool write(const cpu::Write& write, cpu::ManagedContainer& managed);
  void log_writes(const cpu::State& state, const std::vector<cpu::Write>& writes) const;
  void follow(const cpu::State& state, const Tenants& tenants);
  void follow_one(const cpu::State& state, const host::CpuTenant& tenant, const kernel::CpuCgroup& cgroup,
                  const std::optional<cpu::CpuSet>& present);
  static Result<void> remove_quota(const host::CpuTenant& tenant, const kernel::CpuCgroup& cgroup);
  static Result<void> restore_quota(const host::CpuTenant& tenant, const kernel::CpuCgroup& cgroup);
  [[nodiscard]] cpu::CpuSet memory_near(const cpu::CpuSet& cpus) const;
  Result<void> follow_memory(const host::CpuTenant& tenant, const kernel::CpuCgroup& cgroup, const cpu::CpuSet* own);
  Result<void> follow_quota(const host::CpuTenant& tenant, const kernel::CpuCgroup& cgroup, const cpu::CpuSet* own,
                            const std::optional<cpu::CpuSet>& present);
  void follow_unit(const host::CpuTenant& tenant, const kernel::CpuCgroup& cgroup, bool has_own,
                   const cpu::CpuSet& cpus);
  void note_problem(const std::string& id, const std::string& problem);
  [[nodiscard]] std::set<cpu::Owner> alive_owners(const Tenants& tenants) const;
  [[nodiscard]] std::string problem_of(const std::string& id) const;  // "" where there is none
  std::vector<cpu::Tenant> values_of(const Tenants& tenants);  // without requests for more than the settings allow
  void note_refusals(const std::vector<cpu::Refusal>& refusals, const Tenants& tenants);
  void publish(const cpu::State& state, const Tenants& tenants, const std::vector<cpu::ManagedContainer>& managed);

  const kernel::Host& host_;
  ManagerSettings settings_;
  kernel::CpuMounts mounts_;
  Machine machine_;
  std::map<std::string, kernel::CpuCgroup> cgroups_;  // these and the following by Tenant::id
  std::map<std::string, cpu::CpuSet> above_;          // what cgroups above allow, where that is not everything
  std::map<std::uint64_t, std::string> files_;        // the cpusets by inode, since the last call
  std::set<std::uint64_t> quota_files_;               // by inode: of containers with CPUs of their own, on v2
  std::set<std::string> gone_;                        // tenants whose cgroup does not exist any more
  std::map<std::string, std::string> problems_;
  std::map<std::string, std::string> logged_;  // the problems that were logged last
  std::map<std::string, CpusetConflict> conflicts_;
  std::map<std::string, std::string> writers_;
  std::set<cpu::Owner> expected_;
  ByHand by_hand_;                              // owners with an entry in the state
  std::vector<cpu::ManagedContainer> managed_;  // as the last call left them
  std::set<std::string> memory_moved_;          // by Tenant::id: their memory follows CPUs of their own
  std::set<std::string> unlimited_;             // by Tenant::id: their limit of CPU time was removed
  std::set<std::string> units_;                 // of systemd that have CPUs of ours in a file
  std::string stamp_;                           // of the state's file when it was read or written last
  std::uint64_t changed_at_ = 0;                // when it was changed, by us or by others, as far as we know
  bool wants_census_ = false;
  std::optional<cpu::CpuSet> moved_irqs_;  // the CPUs that interrupts were kept away from last
  std::uint64_t irqs_at_ = 0;
  report::CpuStatus status_;
};

}  // namespace hf::cpus
