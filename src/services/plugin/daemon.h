// Daemon: the loop of holdfast-kube: offers devices to kubelet, and changes the offer when the devices change.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "adapters/config/config.h"
#include "adapters/journal/run_file.h"
#include "core/base/result.h"
#include "core/report/blame.h"
#include "kernel/files/host.h"
#include "services/plugin/dra/claim_reader.h"
#include "services/plugin/driver_thread.h"

namespace hf::plugin {

struct DaemonSettings {
  config::Config config;
  std::string version;
  std::function<Result<config::Config>()> reload;          // on SIGHUP
  DriverThread::RefreshSpecs refresh_specs;                // the CDI specs that allocations refer to
  std::function<void(const report::BlameRecord&)> record;  // called for each record of the guard
  // For Dynamic Resource Allocation.
  std::string node;  // the cluster's name for this host
  Api api;           // sends what is written, and repeats it until the API server has it
  ClaimReader::ReadAccess read_access;
  std::function<void(const std::string& state)> notify;
  std::chrono::milliseconds heartbeat{journal::kHeartbeat};  // between two renewals of its file
  std::function<void(const std::string& line, bool is_warning)> log;
};

// Runs until SIGTERM or SIGINT, which must be blocked in all threads, as SIGHUP must.
Result<void> run_daemon(const kernel::Host& host, const DaemonSettings& settings);

}  // namespace hf::plugin
