// Guard: the guarded containers, and what is done when something happens to one. Belongs to one thread, never waits,
// and knows no clock but the one it is given.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/shared.h"
#include "core/container/event.h"
#include "core/container/policy.h"
#include "core/report/blame.h"
#include "kernel/sweep.h"
#include "services/guard/heal_rate_limiter.h"
#include "services/guard/survey.h"
#include "services/guard/visit.h"

namespace hf::guard {

// What a visit found and did, for the recorder.
struct Happening {
  WardPtr ward;
  container::Event event;
  std::string cgroup;
  container::Drift drift;
  container::Drift left;
  container::Effective before;  // the rules as they were at the last visit
  container::Effective found;   // as the event left them
  std::vector<container::Step> steps;
  std::vector<std::string> refused;
  report::Action action = report::Action::none;
  bool is_shielded = false;      // the shield kept all of it open
  std::uint64_t held_opens = 0;  // requests that only the shield let through, since the last visit
  std::optional<std::uint64_t> loss_ns;
  std::optional<std::uint64_t> heal_ns;
  std::string error;
  bool is_identified = false;  // all that /proc knows of the writer is in the event
};

// Whether a container is shielded: changes are reported.
struct ShieldReport {
  WardPtr ward;
  ShieldState state;  // of all its cgroups together
};

class Guard {
 public:
  struct Outlets {
    std::function<void(Happening)> tell;
    std::function<void(ShieldReport)> tell_shield;
    // A cgroup is watched from now on, or no longer. `watch` returns the last change of it that was seen before.
    std::function<std::optional<container::Event>(const kernel::CgroupsPtr&, const kernel::ProcessHandle&)> watch;
    std::function<void(const kernel::CgroupsOfProcess&)> unwatch;
    std::function<std::uint64_t()> clock;  // nanoseconds of CLOCK_MONOTONIC
  };

  Guard(kernel::Filters& filters, Shielding& shielding, Outlets outlets)
      : filters_(filters), shielding_(shielding), outlets_(std::move(outlets)) {}

  void set_limits(const container::Limits& limits) { limits_ = limits; }
  // Containers that were started later were never seen with their devices: giving those is no repair.
  void set_started(std::int64_t ticks) { started_ticks_ = ticks; }

  // Takes over what a survey found: new containers are visited at once, those that are gone are forgotten.
  void adopt(const Survey& survey);
  void add(const WardPtr& ward);
  // One container that has just started, before any survey knows it. What a survey has found is never replaced.
  void welcome(const WardPtr& ward);
  // Shields and entries of containers that are gone are taken off: after a survey that has seen everything.
  void release_unused();

  void handle(const container::Event& event);
  void visit_all(const container::Event& because);
  // Visits that had to wait. The time of the next one, absent where none waits.
  std::optional<std::uint64_t> visit_waiting(std::uint64_t now);

  [[nodiscard]] std::size_t size() const { return places_.size(); }
  // Is this the cgroup of a guarded container? Each v1 hierarchy counts its cgroups by itself.
  [[nodiscard]] bool knows(container::Hierarchy hierarchy, container::CgroupId cgroup) const;

 private:
  // A runtime that must not be disturbed before it has read back what it wrote.
  struct Finishing {
    container::Pid pid;
    kernel::Fd process;
    std::uint64_t until = 0;
  };

  // One cgroup of a guarded container.
  struct Place {
    WardPtr ward;
    kernel::CgroupsPtr cgroups;
    std::optional<kernel::Cgroup> parent;               // of the container's outermost v2 cgroup
    std::optional<Shared<container::Effective>> rules;  // at the last visit
    ShieldState shield;
    std::uint64_t held_told = 0;  // of the shield's count, what records have
    bool is_lost = false;
    std::uint64_t lost_since = 0;
    HealRateLimiter limiter;
    std::unique_ptr<container::Event> waits_for;
    std::uint64_t looks_again_at = 0;
    std::optional<Finishing> finishing;
    std::optional<Finishing> creation;  // the runtime is still at it: its hooks may give the container its devices
  };

  void add_place(const WardPtr& ward, const kernel::CgroupsPtr& cgroups);
  void forget(const kernel::CgroupsKey& key);
  static bool is_finishing(Place& place, const container::Event& event, std::uint64_t now);
  static bool is_being_created(Place& place, const container::Event& event, std::uint64_t now);
  static bool is_about_own_rules(const Place& place, const container::Event& event);
  void look_at(Place& place, const container::Event& event);
  // Where a repair has to wait: the shield's entries never do, for they may have to go.
  std::optional<Visit> settle(Place& place);
  void report(Place& place, const container::Event& event, Visit& made, std::uint64_t started);
  void report_failure(const Place& place, const container::Event& event, const Error& error) const;
  void report_shield(Place& place, const ShieldState& now);
  [[nodiscard]] report::Action action_of(const Place& place, const Visit& made, bool is_first) const;
  container::Event first_event(const kernel::CgroupsOfProcess& cgroups, std::optional<container::Event> seen);
  void remember(const container::Event& event);

  // Containers of a host mostly have the same few rules.
  const Shared<container::Effective>& shared(container::Effective rules);

  kernel::Filters& filters_;
  Shielding& shielding_;
  Outlets outlets_;
  container::Limits limits_;
  std::int64_t started_ticks_ = 0;
  std::deque<Shared<container::Effective>> usual_rules_;
  std::map<kernel::CgroupsKey, Place> places_;
  std::unordered_map<std::uint64_t, std::vector<kernel::CgroupsKey>> by_cgroup_;  // by id: its own, and those above it
  std::deque<container::Event> strangers_;  // the last changes of cgroups that were not known
};

}  // namespace hf::guard
