#include "core/device/oci_rules.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace hf::device {
namespace {

Access allowed_bits(AccessSet set) {
  Access bits = Access::none;
  for (const Access bit : {Access::mknod, Access::read, Access::write}) {
    bits = set.allows(bit) ? bits | bit : bits;
  }
  return bits;
}

Table later_wins(std::span<const OciRule> rules) {
  Table table;
  for (const OciRule& rule : rules) {
    const Table named = Table::of_rules({&rule.rule, 1});
    if (rule.verb == Verb::allow) {
      table = Table::combine(
          table, named, [](AccessSet a, AccessSet b) { return AccessSet::within(allowed_bits(a) | allowed_bits(b)); });
    } else {
      table = Table::combine(
          table, named, [](AccessSet a, AccessSet b) { return AccessSet::within(allowed_bits(a) & ~allowed_bits(b)); });
    }
  }
  return table;
}

V1List list_after(std::span<const OciRule> rules, DefaultVerdict at_first) {
  V1List list{at_first, {}};
  for (const OciRule& rule : rules) {
    const bool all = !rule.rule.selector.kind;
    list = after(std::move(list), {rule.verb, all ? std::nullopt : std::optional<Rule>(rule.rule)});
  }
  return list;
}

}  // namespace

Table meaning(std::span<const OciRule> rules, OciReading reading) {
  switch (reading) {
    case OciReading::later_wins: return later_wins(rules);
    // A new v1 cgroup has its parent's list; runtimes work below one that allows all.
    case OciReading::kernel: return meaning(list_after(rules, DefaultVerdict::allow));
    case OciReading::runc: return meaning(list_after(rules, DefaultVerdict::deny), DenyMatch::within);
  }
  std::unreachable();
}

}  // namespace hf::device
