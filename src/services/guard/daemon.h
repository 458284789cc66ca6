// Daemon: the loop that receives events of changes and heals, and its threads for surveys, inspection and recording.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "adapters/config/config.h"
#include "adapters/journal/run_file.h"
#include "core/base/result.h"
#include "core/container/guard/tier.h"
#include "kernel/files/host.h"
#include "services/guard/recorder.h"
#include "services/guard/survey.h"

namespace hf::guard {

struct DaemonSettings {
  config::Config config;
  std::optional<container::Tier> at_most;  // the best tier it may use
  std::string version;
  std::vector<std::string> missing_capabilities;                   // which it needs: without them it is never ready
  std::function<Result<config::Config>()> reload;                  // on SIGHUP
  std::function<Result<std::vector<report::Finding>>()> diagnose;  // called from the inspector's thread
  std::function<Result<bool>(const config::Config&)> refresh;      // the CDI spec, on the survey thread; true: written
  // Called from the survey thread with every container, and from the newcomers thread with one that has just started.
  Surveyor::Listener census;
  std::function<void(const host::DiscoveredContainer&)> newcomer;
  // Called at the start with a function that asks for a census, from any thread, and at the end with none.
  std::function<void(std::function<void()>)> offer_census;
  std::function<void(const config::Config&)> reloaded;       // after SIGHUP; may be empty
  std::function<void(const std::string& state)> notify;      // sends to the service manager: "READY=1", …
  std::chrono::milliseconds heartbeat{journal::kHeartbeat};  // between two renewals of its file
  Callbacks callbacks;
};

// Runs until SIGTERM or SIGINT, which must be blocked in all threads, as SIGHUP must.
Result<void> run_daemon(const kernel::Host& host, const DaemonSettings& settings);

}  // namespace hf::guard
