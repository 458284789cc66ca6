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

enum class Otherwise : std::uint8_t { deny, allow };  // what holds for devices no exception names
enum class Verb : std::uint8_t { allow, deny };       // devices.allow, devices.deny

// One write to devices.allow or devices.deny. An absent rule is "a": all devices, and the exceptions are forgotten.
struct V1Write {
  Verb verb = Verb::allow;
  std::optional<Rule> rule;

  friend bool operator==(const V1Write&, const V1Write&) = default;
};

struct V1List {
  Otherwise otherwise = Otherwise::deny;
  std::map<Selector, Access> exceptions;  // selectors are of one kind; each number is one or any

  friend bool operator==(const V1List&, const V1List&) = default;
};

// What devices.list says. Kernel: a list that allows by default shows "a *:* rwm" and hides its exceptions, so of such
// a list only the default is known.
Result<V1List> parse_v1_list(std::string_view text);
std::string to_string(const V1List& list);

V1List after(V1List list, const V1Write& write);  // as the kernel does, where the parent agrees

// Which requests an exception of a list that allows by default refuses: every one it touches, as cgroup v1 does, or
// only those made of its letters alone, as runc's v2 filter does.
enum class DenyMatch : std::uint8_t { touching, within };
Table meaning(const V1List& list, DenyMatch deny = DenyMatch::touching);
bool hides_exceptions(const V1List& list);  // true where devices.list cannot tell all

// Kernel: a child may have a rule only if one rule of its parent covers it, alone (verify_new_ex).
bool parent_permits(const V1List& parent, const Rule& rule);

// Can the rule be written to devices.allow: one kind, numbers or any, no range?
bool has_v1_words(const Rule& rule);
std::string file_of(Verb verb);               // "devices.allow"
std::string to_string(const V1Write& write);  // "c 195:0 rw", or "a"

}  // namespace hf::device
