// Daemon: the loop that hears of changes and heals, with its scout and its recorder beside it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "adapters/config/config.h"
#include "core/base/result.h"
#include "core/container/tier.h"
#include "kernel/host.h"
#include "services/guard/recorder.h"

namespace hf::guard {

struct DaemonSettings {
  config::Config config;
  std::optional<container::Tier> at_most;  // no better tier than this
  std::string version;
  std::vector<std::string> missing_capabilities;                   // that it cannot do without: it is never ready then
  std::function<Result<config::Config>()> reload;                  // on SIGHUP
  std::function<Result<std::vector<report::Finding>>()> diagnose;  // from the scout's thread
  std::function<Result<bool>(const config::Config&)> refresh;      // what follows the node: likewise; true: written
  std::function<void(const std::string& state)> notify;            // the service manager: "READY=1", "WATCHDOG=1", …
  std::chrono::milliseconds watchdog{0};                           // how often it wants to hear; 0: not at all
  Outlets outlets;
};

// Until SIGTERM or SIGINT, which must be blocked in all threads, as SIGHUP must.
Result<void> run_daemon(const kernel::Host& host, const DaemonSettings& settings);

}  // namespace hf::guard
