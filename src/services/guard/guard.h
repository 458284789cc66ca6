// Guard: the wards, and what is done when something happens to one. Belongs to one thread, and never waits.
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
#include "kernel/watch.h"
#include "services/guard/patience.h"
#include "services/guard/survey.h"
#include "services/guard/visit.h"

namespace hf::guard {

// What a visit brought to light and did, for the one who writes it down.
struct Happening {
  WardPtr ward;
  container::Event event;
  std::string cgroup;  // where
  container::Drift drift;
  container::Drift left;
  container::Effective before;  // the rules as they were at the last visit
  container::Effective found;   // as the event left them
  container::Effective after;   // as we left them
  std::vector<container::Step> steps;
  std::vector<std::string> refused;
  report::Action action = report::Action::none;
  std::optional<std::uint64_t> loss_ns;
  std::optional<std::uint64_t> heal_ns;
  std::string error;
  int attempts = 1;
  bool is_identified = false;  // all that /proc knows of the writer is in the event
};

class Guard {
 public:
  using Tell = std::function<void(Happening)>;

  Guard(const Tools& tools, kernel::Watch& watch, Tell tell) : tools_(tools), watch_(watch), tell_(std::move(tell)) {}

  // How a writer is found out about while he is there.
  void set_identify(std::function<void(container::Writer&)> identify) { identify_ = std::move(identify); }
  void set_limits(const container::Limits& limits) { limits_ = limits; }

  // Takes over what a survey found: new wards are visited at once, those that are gone are forgotten.
  void adopt(const Survey& survey);

  void handle(const container::Event& event);
  // All wards; `because` says why.
  void visit_all(const container::Event& because);
  // Those that had to wait. The time of the next one, absent where nobody waits.
  std::optional<std::uint64_t> visit_waiting(std::uint64_t now);

  // Loads repaired twins for one ward, so that the next loss costs a query and a replacement. False: all are ready.
  bool prepare_one();

  [[nodiscard]] std::size_t size() const { return places_.size(); }

 private:
  // Somebody who must not be disturbed before he has read back what he wrote.
  struct Finishing {
    container::Pid pid;
    kernel::Fd process;
    std::uint64_t until = 0;
  };

  // One cgroup of a ward.
  struct Place {
    WardPtr ward;
    kernel::CgroupsPtr cgroups;
    std::optional<Shared<container::Effective>> rules;  // at the last visit
    bool is_lost = false;
    std::uint64_t lost_since = 0;
    bool told_of_waiting = false;
    Patience patience;
    Ready ready;  // twins of what may come
    Habits habits;
    std::unique_ptr<container::Event> waits_for;
    std::uint64_t looks_again_at = 0;
    std::optional<Finishing> finishing;
  };

  void add(const WardPtr& ward, const kernel::CgroupsPtr& cgroups);
  void forget(const kernel::CgroupsKey& key);
  std::vector<container::Gate> own_gates(const Place& place);
  static bool is_finishing(Place& place, const container::Event& event, std::uint64_t now);
  void look_at(Place& place, const container::Event& event);
  void report(Place& place, const container::Event& event, Visit& made, std::uint64_t started);

  // Containers of a node mostly have the same few rules.
  const Shared<container::Effective>& shared(container::Effective rules);

  Tools tools_;
  kernel::Watch& watch_;
  Tell tell_;
  std::function<void(container::Writer&)> identify_;
  container::Limits limits_;
  std::deque<Shared<container::Effective>> usual_rules_;
  std::map<kernel::CgroupsKey, Place> places_;
  std::vector<kernel::CgroupsKey> unprepared_;
  std::unordered_map<std::uint64_t, std::vector<kernel::CgroupsKey>> by_cgroup_;  // by id: its own, and those above it
};

}  // namespace hf::guard
