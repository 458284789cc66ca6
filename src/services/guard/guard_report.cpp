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

void Guard::report_failure(const Place& place, const Event& event, const Error& error) const {
  VisitResult result;
  result.guarded = place.guarded;
  result.event = event;
  result.cgroup = where_of(*place.cgroups, event.hierarchy);
  result.action = Action::failed;
  result.error = error.message;
  callbacks_.report_visit(std::move(result));
}

// A container is shielded only if all its cgroups are.
void Guard::report_shield(Place& place, const ShieldState& now) {
  const bool is_news = now.is_on != place.shield.is_on || now.why != place.shield.why;
  place.shield = now;
  if (!is_news) {
    return;
  }
  ShieldReport report{place.guarded, now};
  for (const kernel::CgroupsPtr& cgroups : place.guarded->cgroups()) {
    const auto other = places_.find(kernel::key_of(*cgroups));
    if (other != places_.end() && !other->second.shield.is_on && report.state.is_on) {
      report.state = other->second.shield;
    }
  }
  callbacks_.report_shield(std::move(report));
}

// Nothing took these devices away: a new container's runtime left them out, or the rules, which stayed as they were,
// never had what no evidence names.
bool Guard::is_completion(const Place& place, const Visit& made) const {
  const bool is_new = place.guarded->container.started_ticks >= started_ticks_ && started_ticks_ != 0;
  if (!place.rules && is_new) {
    return true;
  }
  const bool are_as_before = !place.rules || (!place.is_lost && same_rules(**place.rules, made.before));
  return are_as_before && std::ranges::all_of(made.drift.denied, [&place](const std::string& path) {
           const container::OwedNode* const node = place.guarded->owed->find(path);
           return node != nullptr && node->is_completion;
         });
}

Action Guard::action_of(const Place& place, const Visit& made) const {
  const bool is_held = !made.drift.is_loss();
  if (made.drift.is_none()) {
    return Action::none;
  }
  if (made.healed_at == 0) {
    return place.guarded->mode < container::Mode::heal ? Action::observed : Action::failed;
  }
  if (!made.left.is_none()) {
    return Action::failed;
  }
  if (place.postponed_event) {
    return Action::waits;
  }
  return is_completion(place, made) ? Action::completed : is_held ? Action::shielded : Action::healed;
}

void Guard::report(Place& place, const Event& event, Visit& made, std::uint64_t started) {
  report_shield(place, made.shield);
  const bool is_healed = made.healed_at != 0;
  const bool is_lost = made.left.is_loss();
  const bool is_first = !place.rules;
  const bool is_news = is_first || !same_rules(**place.rules, made.before) || is_healed || is_lost != place.is_lost;
  if (!is_news || (is_first && made.drift.is_none())) {
    place.rules = shared(std::move(made.after));
    place.is_lost = is_lost;
    return;
  }
  VisitResult result;
  result.action = action_of(place, made);
  result.guarded = place.guarded;
  result.event = event;
  result.cgroup = where_of(*place.cgroups, event.hierarchy);
  result.before = is_first ? made.before : **place.rules;
  result.left = made.left;
  result.found = std::move(made.before);
  result.refused = std::move(made.refused);
  for (const container::Step& step : made.steps) {
    result.steps.push_back(to_string(step));
  }
  result.is_shielded = !made.drift.is_none() && !made.drift.is_loss();
  // An entry that was recreated counts from 0.
  result.held_opens = made.shield.count - (made.shield.count < place.held_reported ? 0 : place.held_reported);
  place.held_reported = made.shield.count;
  result.drift = std::move(made.drift);
  const bool was_lost = place.is_lost && place.lost_since != 0;
  const bool is_since_known = event.kind != EventKind::found_changed && event.kind != EventKind::lost;
  if (is_healed) {
    const std::uint64_t since = was_lost ? place.lost_since : event.at;
    result.heal_ns =
        made.healed_at - std::min(made.healed_at, result.is_shielded && is_since_known ? event.at : started);
    if (!result.is_shielded && result.action != Action::completed && (is_since_known || was_lost)) {
      result.loss_ns = made.healed_at - std::min(made.healed_at, since);
    }
  }
  place.lost_since = is_lost ? (place.is_lost ? place.lost_since : event.at) : 0;
  place.is_lost = is_lost;
  place.rules = shared(std::move(made.after));
  callbacks_.report_visit(std::move(result));
}

}  // namespace hf::guard
