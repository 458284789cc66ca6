// Change: device rules that a cgroup should allow or refuse, and the Plan of steps that brings this about.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/bpf/generate.h"
#include "core/bpf/instruction.h"
#include "core/container/gate/gate.h"
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
  device::CgroupWrite write;
};

struct ReplaceProgram {
  std::string where;
  ProgramId old;
  std::string owner;
  bpf::Code code;
  device::Table before;         // what the old program lets through; only within the change where it could not be read
  device::Table after;          // what the new program lets through
  bool keeps_original = false;  // the old code could not be read and follows the new rules verbatim
};

// Detaches a redundant program: it refuses what is granted, and everything else that it refuses is refused by the
// programs beside it as well.
struct DetachProgram {
  std::string where;
  ProgramId old;
  std::string owner;
  std::size_t programs = 0;  // how many the cgroup has when this step is applied, this one included
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
  std::vector<Step> steps;         // empty: the change is in force already
  std::vector<std::string> notes;  // what the plan could not determine
};

// Fails with Reason::refused_above and names the gate where one above refuses: those are never widened.
Result<Plan> plan_change(const Observed& observed, const Change& change, const bpf::Generate& generate = bpf::generate);

// The requests that a change covers: an allow covers every subset of its access bits, a deny every request that shares
// a bit with it.
device::Table covered_by(const Change& change);

// Returns whether the gates that can be read agree with the change: each of them allows it, or together they refuse it.
// Only a probe can find out what the other gates do.
bool is_in_force(const Observed& observed, const Change& change);

std::string to_string(const Step& step);

}  // namespace hf::container
