// Change: what someone wants a cgroup to allow or refuse, and the steps that make it so.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/bpf/instruction.h"
#include "core/container/gate.h"
#include "core/device/rule.h"
#include "core/device/table.h"
#include "core/device/v1_list.h"

namespace hf::container {

struct Change {
  device::Verb verb = device::Verb::allow;
  device::RuleSet rules;
};

struct WriteV1 {
  std::string where;
  device::V1Write write;
};

struct ReplaceProgram {
  std::string where;
  ProgramId old;
  std::string owner;
  bpf::Code code;
  device::RuleSet more;  // what the new program lets through that the old one does not
  device::RuleSet less;
  bool keeps_original = false;  // the old code could not be read and follows the new rules verbatim
};

struct AttachProgram {  // where there is none yet
  std::string where;
  bpf::Code code;
  device::RuleSet less;
};

using Step = std::variant<WriteV1, ReplaceProgram, AttachProgram>;

struct Plan {
  std::vector<Step> steps;         // empty: it is so already
  std::vector<std::string> notes;  // what could not be told beforehand
};

// Fails with kRefusedAbove, naming the gate, where one above refuses: those are never widened.
inline constexpr std::errc kRefusedAbove = std::errc::operation_canceled;
Result<Plan> plan_change(const Observed& observed, const Change& change);

// What the rules of a change cover: an allow gives every part of its letters, a deny takes every request it touches.
device::Table covered_by(const Change& change);

// Whether the gates that can be read are as the change wants: each lets through, or together they refuse. What the
// others do is for a probe to say.
bool is_in_force(const Observed& observed, const Change& change);

std::string to_string(const Step& step);

}  // namespace hf::container
