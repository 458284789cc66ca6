// V1List: the state of a cgroup v1 devices controller, and how the kernel changes it (security/device_cgroup.c).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/device/rule.h"
#include "core/device/table.h"

namespace hf::device {

enum class DefaultVerdict : std::uint8_t { deny, allow };  // what holds for devices no exception names
enum class Verb : std::uint8_t { allow, deny };            // devices.allow, devices.deny

// One write to devices.allow or devices.deny. An absent rule is "a": all devices, and the exceptions are discarded.
struct CgroupWrite {
  Verb verb = Verb::allow;
  std::optional<Rule> rule;

  friend bool operator==(const CgroupWrite&, const CgroupWrite&) = default;
};

struct V1List {
  DefaultVerdict default_verdict = DefaultVerdict::deny;
  std::map<Selector, Access> exceptions;  // each selector has one kind; major and minor are a single number or any

  friend bool operator==(const V1List&, const V1List&) = default;
};

// Parses devices.list. Kernel: a list that allows by default shows "a *:* rwm" and hides its exceptions, so of such
// a list only the default is known.
Result<V1List> parse_v1_list(std::string_view text);
std::string to_string(const V1List& list);

V1List after(V1List list, const CgroupWrite& write);  // as the kernel does, where the parent permits it

// Which requests an exception of a list that allows by default refuses: every one it touches, as cgroup v1 does, or
// only those made of its bits alone, as runc's v2 filter does.
enum class DenyMatch : std::uint8_t { touching, within };
Table meaning(const V1List& list, DenyMatch deny = DenyMatch::touching);
bool hides_exceptions(const V1List& list);  // true where devices.list does not show all of them

// Kernel: a child may have a rule only if one rule of its parent covers it, alone (verify_new_ex).
bool parent_permits(const V1List& parent, const Rule& rule);

// Whether the rule can be written to devices.allow: one kind, single numbers or any, no range.
bool is_v1_rule(const Rule& rule);
std::string file_of(Verb verb);                   // "devices.allow"
std::string to_string(const CgroupWrite& write);  // "c 195:0 rw", or "a"

}  // namespace hf::device
