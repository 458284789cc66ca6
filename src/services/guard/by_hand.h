// ByHand: one visit to some containers, or to all, without the daemon.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/report/heal_report.h"
#include "kernel/filters.h"
#include "kernel/host.h"
#include "kernel/seat.h"

namespace hf::guard {

struct Bench {
  const kernel::Host& host;
  kernel::Filters& filters;
  kernel::Seats& seats;
};

enum class Doing : std::uint8_t { dry_run, carry_out };

// Whoever asks by hand wants it healed: the policy is not asked. No words: all that are owed something.
Result<report::HealReport> heal_by_hand(const Bench& bench, const std::vector<std::string>& words, Doing doing);

}  // namespace hf::guard
