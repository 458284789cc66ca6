// Change: what someone wants a cgroup to allow or refuse, and the steps that make it so.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/bpf/generate.h"
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
  device::Table before;         // what the old program lets through; where it could not be read, of the change alone
  device::Table after;          // and the new one
  bool keeps_original = false;  // the old code could not be read and follows the new rules verbatim
};

// A program that refuses what is granted, and nothing else that those beside it would let through: without it they say
// all it said.
struct DetachProgram {
  std::string where;
  ProgramId old;
  std::string owner;
  std::size_t programs = 0;  // how many the cgroup has then, this one included
};

struct AttachProgram {  // where there is none yet
  std::string where;
  bpf::Code code;
  device::RuleSet less;
};

// The shield must not keep open what is revoked.
struct RemoveShieldEntry {
  std::string where;  // the cgroup that the shield is attached to
  ProgramId shield;
  device::Device device;
};

using Step = std::variant<WriteV1, ReplaceProgram, DetachProgram, AttachProgram, RemoveShieldEntry>;

struct Plan {
  std::vector<Step> steps;         // empty: it is so already
  std::vector<std::string> notes;  // what could not be told beforehand
};

// Fails with kRefusedAbove, naming the gate, where one above refuses: those are never widened.
inline constexpr std::errc kRefusedAbove = std::errc::operation_canceled;
Result<Plan> plan_change(const Observed& observed, const Change& change, const bpf::Generate& generate = bpf::generate);

// What the rules of a change cover: an allow gives every part of its letters, a deny takes every request it touches.
device::Table covered_by(const Change& change);

// Whether the gates that can be read are as the change wants: each lets through, or together they refuse. What the
// others do is for a probe to say.
bool is_in_force(const Observed& observed, const Change& change);

std::string to_string(const Step& step);

}  // namespace hf::container
