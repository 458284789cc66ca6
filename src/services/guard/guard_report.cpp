// What the guard reports of a visit: whether it is news, what was done, how long a loss lasted.
#include <algorithm>

#include "services/guard/guard.h"

namespace hf::guard {
namespace {

using container::Event;
using container::EventKind;
using report::Action;

constexpr std::size_t kMostCommonRules = 16;  // sets of rules

std::string where_of(const kernel::CgroupsOfProcess& cgroups, container::Hierarchy hierarchy) {
  const std::optional<kernel::Cgroup>& first = hierarchy == container::Hierarchy::v1 ? cgroups.v1 : cgroups.v2;
  const std::optional<kernel::Cgroup>& other = hierarchy == container::Hierarchy::v1 ? cgroups.v2 : cgroups.v1;
  return first ? first->where : other ? other->where : std::string();
}

bool same_rules(const container::Effective& a, const container::Effective& b) {
  return a.exact == b.exact && a.table == b.table;
}

}  // namespace

const Shared<container::Effective>& Guard::shared(container::Effective rules) {
  const auto same = std::ranges::find_if(common_rules_, [&rules](const Shared<container::Effective>& common) {
    return same_rules(*common, rules) && common->why == rules.why;
  });
  if (same != common_rules_.end()) {
    return *same;
  }
  if (common_rules_.size() >= kMostCommonRules) {
    common_rules_.pop_front();
  }
  return common_rules_.emplace_back(std::move(rules));
}

void Guard::report_failure(const GuardedCgroup& guarded_cgroup, const Event& event, const Error& error) const {
  VisitResult result;
  result.guarded = guarded_cgroup.guarded;
  result.event = event;
  result.cgroup = where_of(*guarded_cgroup.cgroups, event.hierarchy);
  result.action = Action::failed;
  result.error = error.message;
  callbacks_.report_visit(std::move(result));
}

// A container is shielded only if all its cgroups are.
void Guard::report_shield(GuardedCgroup& guarded_cgroup, const ShieldState& now) {
  const bool is_news = now.is_on != guarded_cgroup.shield.is_on || now.why != guarded_cgroup.shield.why;
  guarded_cgroup.shield = now;
  if (!is_news) {
    return;
  }
  ShieldReport report{guarded_cgroup.guarded, now};
  for (const kernel::CgroupsPtr& cgroups : guarded_cgroup.guarded->cgroups()) {
    const auto other = guarded_cgroups_.find(kernel::key_of(*cgroups));
    if (other != guarded_cgroups_.end() && !other->second.shield.is_on && report.state.is_on) {
      report.state = other->second.shield;
    }
  }
  callbacks_.report_shield(std::move(report));
}

// Nothing took these devices away: a new container's runtime left them out, or the rules, which stayed as they were,
// never had what no evidence names.
bool Guard::is_completion(const GuardedCgroup& guarded_cgroup, const Visit& made) const {
  const bool is_new = guarded_cgroup.guarded->container.started_ticks >= started_ticks_ && started_ticks_ != 0;
  if (!guarded_cgroup.rules && is_new) {
    return true;
  }
  const bool are_as_before =
      !guarded_cgroup.rules || (!guarded_cgroup.is_lost && same_rules(**guarded_cgroup.rules, made.before));
  return are_as_before && std::ranges::all_of(made.drift.denied, [&guarded_cgroup](const std::string& path) {
           const container::OwedNode* const node = guarded_cgroup.guarded->owed->find(path);
           return node != nullptr && node->is_completion;
         });
}

Action Guard::action_of(const GuardedCgroup& guarded_cgroup, const Visit& made) const {
  const bool is_held = !made.drift.is_loss();
  if (made.drift.is_none()) {
    return Action::none;
  }
  if (made.healed_at == 0) {
    return guarded_cgroup.guarded->mode < container::Mode::heal ? Action::observed : Action::failed;
  }
  if (!made.left.is_none()) {
    return Action::failed;
  }
  if (guarded_cgroup.postponed_event) {
    return Action::waits;
  }
  return is_completion(guarded_cgroup, made) ? Action::completed : is_held ? Action::shielded : Action::healed;
}

void Guard::report(GuardedCgroup& guarded_cgroup, const Event& event, Visit& made, std::uint64_t started) {
  report_shield(guarded_cgroup, made.shield);
  const bool is_healed = made.healed_at != 0;
  const bool is_lost = made.left.is_loss();
  const bool is_first = !guarded_cgroup.rules;
  const bool is_news =
      is_first || !same_rules(**guarded_cgroup.rules, made.before) || is_healed || is_lost != guarded_cgroup.is_lost;
  if (!is_news || (is_first && made.drift.is_none())) {
    guarded_cgroup.rules = shared(std::move(made.after));
    guarded_cgroup.is_lost = is_lost;
    return;
  }
  VisitResult result;
  result.action = action_of(guarded_cgroup, made);
  result.guarded = guarded_cgroup.guarded;
  result.event = event;
  result.cgroup = where_of(*guarded_cgroup.cgroups, event.hierarchy);
  result.before = is_first ? made.before : **guarded_cgroup.rules;
  result.left = made.left;
  result.found = std::move(made.before);
  result.refused = std::move(made.refused);
  for (const container::Step& step : made.steps) {
    result.steps.push_back(to_string(step));
  }
  result.is_shielded = !made.drift.is_none() && !made.drift.is_loss();
  // An entry that was recreated counts from 0.
  result.held_opens =
      made.shield.count - (made.shield.count < guarded_cgroup.held_reported ? 0 : guarded_cgroup.held_reported);
  guarded_cgroup.held_reported = made.shield.count;
  result.drift = std::move(made.drift);
  const bool was_lost = guarded_cgroup.is_lost && guarded_cgroup.lost_since != 0;
  const bool is_since_known = event.kind != EventKind::found_changed && event.kind != EventKind::lost;
  if (is_healed) {
    const std::uint64_t since = was_lost ? guarded_cgroup.lost_since : event.at;
    result.heal_ns =
        made.healed_at - std::min(made.healed_at, result.is_shielded && is_since_known ? event.at : started);
    if (!result.is_shielded && result.action != Action::completed && (is_since_known || was_lost)) {
      result.loss_ns = made.healed_at - std::min(made.healed_at, since);
    }
  }
  guarded_cgroup.lost_since = is_lost ? (guarded_cgroup.is_lost ? guarded_cgroup.lost_since : event.at) : 0;
  guarded_cgroup.is_lost = is_lost;
  guarded_cgroup.rules = shared(std::move(made.after));
  callbacks_.report_visit(std::move(result));
}

}  // namespace hf::guard
