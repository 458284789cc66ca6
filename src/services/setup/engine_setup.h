// EngineSetup: adds our runtime to the config of a container engine, and removes it again.
#pragma once

#include <cstdint>
#include <string>

#include "adapters/engine/registration.h"
#include "core/base/result.h"
#include "core/base/run_mode.h"
#include "core/report/setup_report.h"
#include "kernel/files/host.h"

namespace hf::setup {

struct EngineSetupOptions {
  std::string engine;
  std::string file;  // "": the engine's default
  engine::Registration registration;
  RunMode mode = RunMode::carry_out;
  std::string unit = {};  // of systemd; "": the engine's default
};

// Suffix of the backup, which keeps the file as it was before it contained anything of ours.
inline constexpr const char* kBackup = ".holdfast-backup";

// Where our runtime is the default and the registration only offers it, the earlier default is restored.
Result<report::SetupReport> register_runtime(const kernel::Host& host, const EngineSetupOptions& options);
// A file that was not edited since is restored byte for byte; otherwise only our parts are removed. The registration in
// the options is ignored.
Result<report::SetupReport> undo_registration(const kernel::Host& host, const EngineSetupOptions& options);

}  // namespace hf::setup
