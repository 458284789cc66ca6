// Answer: what a command of kubectl left behind, as the answer of a node.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "kernel/process/command_pool.h"
#include "render/fleet.h"
#include "services/fleet/question.h"

namespace hf::fleet {

// The output of a command that succeeded; otherwise the reason that kubectl gives, in one line.
Result<std::string> output_of(const kernel::CommandEnd& end, const kernel::PoolLimits& limits);

// The node's document on one line; where a pod is asked about, only what is about it.
Result<std::string> document_of(const Inquiry& inquiry, const std::string& output);

struct Reading {
  const Inquiry& inquiry;
  const kernel::PoolLimits& limits;
  report::Notes notes = report::Notes::hidden;
  std::int64_t now = 0;  // seconds since 1970
};
report::NodeAnswer read_answer(const Reading& reading, const report::FleetMember& member,
                               const kernel::CommandEnd& end);

}  // namespace hf::fleet
