#include "core/device/v1_plan.h"

#include <algorithm>
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

CgroupWrite allow(const Selector& selector, Access access) {
  return {Verb::allow, Rule{selector, access, Match::within}};
}
CgroupWrite deny(const Selector& selector, Access access) {
  return {Verb::deny, Rule{selector, access, Match::within}};
}

// The same rules as cgroup v1 can express them: each kind on its own, ranges number by number. Fails where that would
// be too many.
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

}  // namespace

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
  if (now.default_verdict == DefaultVerdict::allow) {
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

}  // namespace hf::device
