// Startup: what the daemon does once, before its loop runs.
#pragma once

#include <string>

#include "core/container/guard/tier.h"
#include "core/report/snapshot.h"
#include "kernel/files/host.h"
#include "services/guard/daemon.h"

namespace hf::guard {

// A loss lasts as long as this thread waits for a CPU, so it gets a real-time priority. It never runs for long, and
// its children and later threads start with the normal priority.
void raise_priority();

report::Snapshot initial_snapshot(const kernel::Host& host, const DaemonSettings& settings,
                                  const container::Tiers& tiers);
Result<void> write_status_file(const kernel::Host& host, const DaemonSettings& settings, const container::Tiers& tiers);
void log_tiers(const DaemonSettings& settings, const container::Tiers& tiers, const std::string& why_no_shield);

}  // namespace hf::guard
