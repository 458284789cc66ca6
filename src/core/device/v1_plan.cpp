#include "core/device/v1_plan.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "core/base/text.h"
#include "core/device/shortest.h"

namespace hf::device {
namespace {

constexpr std::uint64_t kMostNumbers = 1024;  // in one range; each is a line of devices.list that every open() walks

std::uint64_t size_of(const std::optional<Span>& span) {
  return span ? std::uint64_t(span->last) - span->first + 1 : 1;
}

std::vector<std::optional<Span>> numbers_of(const std::optional<Span>& span) {
  if (!span) {
    return {std::nullopt};
  }
  std::vector<std::optional<Span>> numbers;
  for (std::uint64_t number = span->first; number <= span->last; ++number) {
    numbers.emplace_back(Span{std::uint32_t(number), std::uint32_t(number)});
  }
  return numbers;
}

Table meaning_of(const Selector& selector, Access access) {
  const Rule rule{selector, access, Match::within};
  return access == Access::none ? Table() : Table::of_rules({&rule, 1});
}

CgroupWrite allow(const Selector& selector, Access access) {
  return {Verb::allow, Rule{selector, access, Match::within}};
}
CgroupWrite deny(const Selector& selector, Access access) {
  return {Verb::deny, Rule{selector, access, Match::within}};
}

// What happens to an exception that cannot stay as it is: it keeps the bits that match what is wanted, or none.
enum class Keep : std::uint8_t { matching, nothing };

// These are the bits of a wanted rule with the same selector, or else the most that are wanted.
Access kept_bits(const Selector& selector, Access access, std::span<const Rule> rules, const Table& wanted) {
  if (wanted.contains(meaning_of(selector, access))) {
    return access;
  }
  Access best = Access::none;
  const auto prefer = [&best](Access bits) {
    best = std::popcount(unsigned(bits)) > std::popcount(unsigned(best)) ? bits : best;
  };
  for (const Rule& rule : rules) {
    if (rule.selector == selector) {
      prefer(rule.access & access);
    }
  }
  for (unsigned bits = 1; best == Access::none && bits <= unsigned(Access::all); ++bits) {
    if (contains(access, Access(bits)) && wanted.contains(meaning_of(selector, Access(bits)))) {
      prefer(Access(bits));
    }
  }
  return best;
}

// The target list: what may stay of the old list, and those of the wanted rules that this does not cover.
V1List list_to_reach(const V1List& now, std::span<const Rule> rules, const Table& wanted, Keep keep) {
  V1List list;
  for (const auto& [selector, access] : now.exceptions) {
    const Access stays = kept_bits(selector, access, rules, wanted);
    if (stays == access || (keep == Keep::matching && stays != Access::none)) {
      list.exceptions[selector] = stays;
    }
  }
  for (const Rule& rule : rules) {
    if (!meaning(list).contains(Table::of_rules({&rule, 1}))) {
      list = after(std::move(list), {Verb::allow, rule});
    }
  }
  return list;
}

struct Steps {
  V1Plan narrow;  // deny what is removed
  V1Plan widen;   // allow what is added
};

// Allows come first, so that nothing that both lists allow is missing in between. Where one selector both loses and
// gains bits, that order would let both through together for a moment; there the deny comes first if it removes nothing
// that both lists allow.
V1Plan in_safe_order(const V1List& now, const Steps& steps, const Table& common) {
  V1Plan plan;
  V1List state = now;
  const auto same_selector = [](const CgroupWrite& a) {
    return [&a](const CgroupWrite& b) { return a.rule->selector == b.rule->selector; };
  };
  std::vector<CgroupWrite> denies = steps.narrow;
  V1Plan mixed;
  for (const CgroupWrite& write : steps.widen) {
    if (std::ranges::any_of(denies, same_selector(write))) {
      mixed.push_back(write);
      continue;
    }
    plan.push_back(write);
    state = after(std::move(state), write);
  }
  for (const CgroupWrite& write : mixed) {
    const auto partner = std::ranges::find_if(denies, same_selector(write));
    if (partner != denies.end() && meaning(after(state, *partner)).contains(common)) {
      plan.push_back(*partner);
      denies.erase(partner);
    }
    plan.push_back(write);
    state = after(now, plan);
  }
  plan.insert(plan.end(), denies.begin(), denies.end());
  return plan;
}

Steps steps_between(const V1List& now, const V1List& then) {
  const auto access_for = [](const V1List& list, const Selector& selector) {
    const auto exception = list.exceptions.find(selector);
    return exception == list.exceptions.end() ? Access::none : exception->second;
  };
  Steps steps;
  for (const auto& [selector, access] : now.exceptions) {
    const Access removed = access & ~access_for(then, selector);
    if (removed != Access::none) {
      steps.narrow.push_back(deny(selector, removed));
    }
  }
  for (const auto& [selector, access] : then.exceptions) {
    const Access added = access & ~access_for(now, selector);
    if (added != Access::none) {
      steps.widen.push_back(allow(selector, added));
    }
  }
  return steps;
}

// Plans that need no rules compared: nothing to do, all devices, or a change the kernel cannot make without a gap.
std::optional<Result<V1Plan>> plan_between_defaults(const V1List& now, const Table& wanted) {
  if (!hides_exceptions(now) && meaning(now) == wanted) {
    return V1Plan{};
  }
  if (wanted == Table::everything()) {
    return V1Plan{{Verb::allow, std::nullopt}};
  }
  if (now.otherwise == Otherwise::allow) {
    return fail(
        std::errc::operation_not_supported,
        "plan cgroup v1 rules: this cgroup allows all devices; to list some instead, the kernel must deny all first");
  }
  return std::nullopt;
}

Result<V1Plan> shortest_plan(const V1List& now, std::span<const V1List> goals, const Table& wanted) {
  std::optional<Steps> best;
  const auto writes = [](const Steps& steps) { return steps.narrow.size() + steps.widen.size(); };
  for (const V1List& goal : goals) {
    if (goal.otherwise == Otherwise::allow || askable(meaning(goal)) != askable(wanted)) {
      continue;
    }
    Steps steps = steps_between(now, goal);
    if (!best || writes(steps) < writes(*best)) {
      best = std::move(steps);
    }
  }
  if (!best) {
    return fail(std::errc::operation_not_supported,
                "plan cgroup v1 rules: this meaning cannot be expressed in cgroup v1");
  }
  return in_safe_order(now, *best, meaning(now) & wanted);
}

}  // namespace

Result<RuleSet> to_v1_rules(std::span<const Rule> rules) {
  RuleSet v1_rules;
  for (const Rule& rule : rules) {
    const std::uint64_t numbers = std::max(size_of(rule.selector.major), size_of(rule.selector.minor));
    if (rule.match == Match::exactly || numbers > kMostNumbers ||
        size_of(rule.selector.major) * size_of(rule.selector.minor) > kMostNumbers) {
      return fail(std::errc::operation_not_supported,
                  "write rule " + quote(to_string(rule)) + ": cgroup v1 cannot express it, only single numbers and *");
    }
    for (const Kind kind : kKinds) {
      if (rule.selector.kind.value_or(kind) != kind) {
        continue;
      }
      for (const std::optional<Span>& major : numbers_of(rule.selector.major)) {
        for (const std::optional<Span>& minor : numbers_of(rule.selector.minor)) {
          v1_rules.push_back({{kind, major, minor}, rule.access, Match::within});
        }
      }
    }
  }
  return v1_rules;
}

Result<V1Plan> plan_v1_grant(const V1List& now, std::span<const Rule> rules) {
  const Table asked = Table::of_rules(rules);
  const RuleSet v1_rules = TRY(to_v1_rules(shortest_rules(asked)));
  V1Plan plan;
  V1List state = now;
  for (const Rule& rule : v1_rules) {
    // A write to a list that hides its exceptions may be needless, but only the kernel knows.
    if (!hides_exceptions(now) && meaning(state).contains(Table::of_rules({&rule, 1}))) {
      continue;
    }
    const auto held = state.exceptions.find(rule.selector);
    const Access missing = held == state.exceptions.end() ? rule.access : rule.access & ~held->second;
    plan.push_back(allow(rule.selector, missing == Access::none ? rule.access : missing));
    state = after(std::move(state), plan.back());
  }
  return plan;
}

Result<V1Plan> plan_v1_revoke(const V1List& now, std::span<const Rule> rules) {
  const RuleSet v1_rules = TRY(to_v1_rules(shortest_rules(Table::of_rules(rules))));
  V1Plan plan;
  if (now.otherwise == Otherwise::allow) {
    std::ranges::transform(v1_rules, std::back_inserter(plan),
                           [](const Rule& rule) { return deny(rule.selector, rule.access); });
    return plan;
  }
  for (const auto& [selector, access] : now.exceptions) {
    Access removed = Access::none;
    for (const Rule& rule : v1_rules) {
      if (!rule.selector.overlaps(selector) || (rule.access & access) == Access::none) {
        continue;
      }
      if (!rule.selector.contains(selector)) {
        return fail(std::errc::operation_not_supported,
                    "revoke " + quote(to_string(rule)) + ": the rule " +
                        quote(to_string(Rule{selector, access, Match::within})) +
                        " covers it and more, and cgroup v1 cannot cut a hole; revoke that rule, then grant the rest");
      }
      removed = removed | (rule.access & access);
    }
    if (removed != Access::none) {
      plan.push_back(deny(selector, removed));
    }
  }
  return plan;
}

Result<V1Plan> plan_v1(const V1List& now, const V1List& wanted) {
  const Table table = meaning(wanted);
  if (const std::optional<Result<V1Plan>> simple = plan_between_defaults(now, table)) {
    return *simple;
  }
  const Result<RuleSet> v1_rules = to_v1_rules(shortest_rules(table));
  std::vector<V1List> goals = {wanted};
  if (v1_rules) {
    goals.push_back(list_to_reach(now, *v1_rules, table, Keep::matching));
    goals.push_back(list_to_reach(now, *v1_rules, table, Keep::nothing));
  }
  return shortest_plan(now, goals, table);
}

Result<V1Plan> plan_v1(const V1List& now, const Table& wanted) {
  if (const std::optional<Result<V1Plan>> simple = plan_between_defaults(now, wanted)) {
    return *simple;
  }
  const RuleSet v1_rules = TRY(to_v1_rules(shortest_rules(wanted)));
  const std::vector<V1List> goals = {list_to_reach(now, v1_rules, wanted, Keep::matching),
                                     list_to_reach(now, v1_rules, wanted, Keep::nothing),
                                     list_to_reach({}, v1_rules, wanted, Keep::nothing)};
  return shortest_plan(now, goals, wanted);
}

V1List after(V1List list, const V1Plan& plan) {
  for (const CgroupWrite& write : plan) {
    list = after(std::move(list), write);
  }
  return list;
}

}  // namespace hf::device
