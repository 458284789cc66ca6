#include "core/device/v1_list.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/text.h"

namespace hf::device {
namespace {

void add(V1List& list, const Rule& rule) {
  Access& access = list.exceptions[rule.selector];
  access = access | rule.access;
}

// Kernel: only an exception with the very same selector loses bits; a wider one stays as it is (dev_exception_rm).
void remove(V1List& list, const Rule& rule) {
  const auto exception = list.exceptions.find(rule.selector);
  if (exception == list.exceptions.end()) {
    return;
  }
  exception->second = exception->second & ~rule.access;
  if (exception->second == Access::none) {
    list.exceptions.erase(exception);
  }
}

bool is_number_or_any(const std::optional<Span>& span) {
  // Kernel: ~0 stands for "any" in a v1 rule, so it cannot stand for a number.
  return !span || (span->is_point() && span->first != kLastNumber);
}

}  // namespace

Result<V1List> parse_v1_list(std::string_view text) {
  V1List list;
  for (const std::string_view line : split(text, '\n')) {
    if (trim(line).empty()) {
      continue;
    }
    const Rule rule = TRY(parse_rule(line));
    if (!rule.selector.kind) {
      if (rule != Rule{{}, Access::all, Match::within}) {
        return fail(std::errc::invalid_argument,
                    "parse devices.list " + quote(line) + ": 'a' stands for all devices only");
      }
      list.default_verdict = DefaultVerdict::allow;
      continue;
    }
    if (!is_v1_rule(rule)) {
      return fail(std::errc::invalid_argument, "parse devices.list " + quote(line) + ": not in the kernel's format");
    }
    add(list, rule);
  }
  if (list.default_verdict == DefaultVerdict::allow && !list.exceptions.empty()) {
    return fail(std::errc::invalid_argument, "parse devices.list: a rule beside 'a *:* rwm'");
  }
  return list;
}

std::string to_string(const V1List& list) {
  if (list.default_verdict == DefaultVerdict::allow) {
    return "a *:* rwm\n";
  }
  std::string text;
  for (const auto& [selector, access] : list.exceptions) {
    text += to_string(Rule{selector, access, Match::within}) + "\n";
  }
  return text;
}

V1List after(V1List list, const CgroupWrite& write) {
  if (!write.rule) {
    return {write.verb == Verb::allow ? DefaultVerdict::allow : DefaultVerdict::deny, {}};
  }
  const bool adds = (write.verb == Verb::allow) == (list.default_verdict == DefaultVerdict::deny);
  if (adds) {
    add(list, *write.rule);
  } else {
    remove(list, *write.rule);
  }
  return list;
}

Table meaning(const V1List& list, DenyMatch deny) {
  const bool parts = list.default_verdict == DefaultVerdict::deny || deny == DenyMatch::within;
  std::vector<Box> boxes;
  for (const auto& [selector, access] : list.exceptions) {
    const AccessSet set = parts ? AccessSet::within(access) : AccessSet::touching(access);
    boxes.push_back({*selector.kind, selector.major.value_or(Span{}), selector.minor.value_or(Span{}), set});
  }
  const Table named = Table::of_boxes(boxes);
  return list.default_verdict == DefaultVerdict::deny ? named : Table::everything() - named;
}

bool hides_exceptions(const V1List& list) { return list.default_verdict == DefaultVerdict::allow; }

bool parent_permits(const V1List& parent, const Rule& rule) {
  const auto covers = [&](const auto& exception) {
    return exception.first.contains(rule.selector) && contains(exception.second, rule.access);
  };
  const auto touches = [&](const auto& exception) {
    return exception.first.overlaps(rule.selector) && (exception.second & rule.access) != Access::none;
  };
  return parent.default_verdict == DefaultVerdict::deny ? std::ranges::any_of(parent.exceptions, covers)
                                                        : std::ranges::none_of(parent.exceptions, touches);
}

bool is_v1_rule(const Rule& rule) {
  return rule.selector.kind && is_number_or_any(rule.selector.major) && is_number_or_any(rule.selector.minor) &&
         rule.match == Match::within && rule.access != Access::none;
}

std::string file_of(Verb verb) { return verb == Verb::allow ? "devices.allow" : "devices.deny"; }

std::string to_string(const CgroupWrite& write) { return write.rule ? to_string(*write.rule) : "a"; }

}  // namespace hf::device
