// VisitResult: what a visit to a container found and did, for the recorder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/container/gate/gate.h"
#include "core/container/guard/drift.h"
#include "core/container/guard/event.h"
#include "core/report/blame.h"
#include "services/guard/guarded_container.h"

namespace hf::guard {

struct VisitResult {
  GuardedContainerPtr guarded;
  report::Action action = report::Action::none;
  std::vector<std::string> steps;  // that were carried out
  std::string error;
  bool is_upkeep = false;  // about systemd's unit, device nodes or locks; the fields below are about rules

  container::Event event;
  std::string cgroup;
  container::Drift drift;
  container::Drift left;
  container::Effective before;  // the rules as they were at the last visit
  container::Effective found;   // as the event left them
  std::vector<std::string> refused;
  bool is_shielded = false;      // the shield kept all of it open
  std::uint64_t held_opens = 0;  // requests that only the shield let through, since the last visit
  std::optional<std::uint64_t> loss_ns;
  std::optional<std::uint64_t> heal_ns;
  bool is_identified = false;  // the event already has all that /proc knows of the writer
};

}  // namespace hf::guard
