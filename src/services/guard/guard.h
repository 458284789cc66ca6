// Guard: keeps the guarded containers, and visits one when an event concerns it. Belongs to one thread, never blocks,
// and uses only the clock it is given.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/shared.h"
#include "core/container/guard/event.h"
#include "core/container/guard/policy.h"
#include "core/report/blame.h"
#include "kernel/cgroup/sweep.h"
#include "services/guard/heal_rate_limiter.h"
#include "services/guard/survey.h"
#include "services/guard/visit.h"
#include "services/guard/visit_result.h"

namespace hf::guard {

// Whether a container is shielded, reported when it changes.
struct ShieldReport {
  GuardedContainerPtr guarded;
  ShieldState state;  // of all its cgroups together
};

class Guard {
 public:
  struct Callbacks {
    std::function<void(VisitResult)> report_visit;
    std::function<void(ShieldReport)> report_shield;
    // Starts and ends watching a cgroup. `watch` returns the last change of it that was seen before.
    std::function<std::optional<container::Event>(const kernel::CgroupsPtr&, const kernel::ProcessHandle&)> watch;
    std::function<void(const kernel::CgroupsOfProcess&)> unwatch;
    std::function<std::uint64_t()> clock;  // nanoseconds of CLOCK_MONOTONIC
  };

  Guard(kernel::Filters& filters, Shielding& shielding, Callbacks callbacks)
      : filters_(filters), shielding_(shielding), callbacks_(std::move(callbacks)) {}

  void set_limits(const container::Limits& limits) { limits_ = limits; }
  // The start of the daemon. Containers that were started later were never seen with their devices: giving them those
  // is no repair.
  void set_started(std::int64_t ticks) { started_ticks_ = ticks; }

  // Replaces the guarded containers by those of a survey: new and changed ones are visited at once, ended ones are
  // forgotten, and those that were read again are visited by visit_surveyed.
  void adopt(const Survey& survey);
  // Stops at a time, because visiting a thousand containers takes 70 ms, in which no event is handled. Returns whether
  // all were visited.
  bool visit_surveyed(std::uint64_t until);
  void add(const GuardedContainerPtr& guarded);
  // Adds a container that has just started, before a survey has found it. What a survey has found is never replaced.
  void add_newcomer(const GuardedContainerPtr& guarded);
  // Removes the shields and entries of containers that have ended. Call it after a survey of everything.
  void release_unused();

  void act_on(const container::Event& event);
  void visit_all(const container::Event& because);
  // Does postponed visits that are due. Returns the time of the next one, absent where none is postponed.
  std::optional<std::uint64_t> visit_waiting(std::uint64_t now);

  [[nodiscard]] std::size_t size() const { return guarded_cgroups_.size(); }
  // Is this the cgroup of a guarded container? Cgroup ids are unique only within one v1 hierarchy.
  [[nodiscard]] bool knows(container::Hierarchy hierarchy, container::CgroupId cgroup) const;

 private:
  // A runtime that must not be disturbed before it has read back what it wrote.
  struct Finishing {
    container::Pid pid;
    kernel::Fd process;
    std::uint64_t until = 0;
  };

  struct GuardedCgroup {
    GuardedContainerPtr guarded;
    kernel::CgroupsPtr cgroups;
    std::shared_ptr<const kernel::Cgroup> parent;       // of the container's outermost v2 cgroup
    std::optional<Shared<container::Effective>> rules;  // at the last visit
    ShieldState shield;
    std::uint64_t held_reported = 0;  // the part of the shield's count that was reported
    bool is_lost = false;
    std::uint64_t lost_since = 0;
    HealRateLimiter limiter;
    std::unique_ptr<container::Event> postponed_event;
    std::uint64_t revisit_at = 0;
    std::optional<Finishing> finishing;
    std::optional<Finishing> creation;  // the runtime still runs: its hooks may give the container its devices
  };

  void add_cgroup(const GuardedContainerPtr& guarded, const kernel::CgroupsPtr& cgroups);
  // The cgroup that the shield of a container is attached to: the parent of the outermost of its v2 cgroups.
  std::shared_ptr<const kernel::Cgroup> shield_parent_of(const GuardedContainer& guarded);
  void forget(const kernel::CgroupsKey& key);
  static bool is_finishing(GuardedCgroup& guarded_cgroup, const container::Event& event, std::uint64_t now);
  static bool works_for(const container::Writer& writer, container::Pid process);
  static bool is_being_created(GuardedCgroup& guarded_cgroup, const container::Event& event, std::uint64_t now);
  static bool is_about_own_rules(const GuardedCgroup& guarded_cgroup, const container::Event& event);
  void visit_cgroup(GuardedCgroup& guarded_cgroup, const container::Event& event);
  void visit_again(GuardedCgroup& guarded_cgroup);
  // Updates only the shield, where a repair is postponed: entries that are no longer owed must go at once.
  std::optional<Visit> settle(GuardedCgroup& guarded_cgroup);
  void report(GuardedCgroup& guarded_cgroup, const container::Event& event, Visit& made, std::uint64_t started);
  void report_failure(const GuardedCgroup& guarded_cgroup, const container::Event& event, const Error& error) const;
  void report_shield(GuardedCgroup& guarded_cgroup, const ShieldState& now);
  [[nodiscard]] bool is_completion(const GuardedCgroup& guarded_cgroup, const Visit& made) const;
  [[nodiscard]] report::Action action_of(const GuardedCgroup& guarded_cgroup, const Visit& made) const;
  container::Event first_event(const kernel::CgroupsOfProcess& cgroups, std::optional<container::Event> seen);
  void remember(const container::Event& event);

  // Containers of a host mostly have the same few rules.
  const Shared<container::Effective>& shared(container::Effective rules);

  kernel::Filters& filters_;
  Shielding& shielding_;
  Callbacks callbacks_;
  container::Limits limits_;
  std::int64_t started_ticks_ = 0;
  std::deque<Shared<container::Effective>> common_rules_;
  std::map<kernel::CgroupsKey, GuardedCgroup> guarded_cgroups_;
  std::set<kernel::CgroupsKey> surveyed_;                                         // to be visited, without haste
  std::map<container::CgroupId, std::weak_ptr<const kernel::Cgroup>> parents_;    // of all: many have the same
  std::unordered_map<std::uint64_t, std::vector<kernel::CgroupsKey>> by_cgroup_;  // by id: its own, and those above it
  std::deque<container::Event> unknown_cgroup_events_;  // the last changes of cgroups that were not guarded then
};

}  // namespace hf::guard
