// EngineRestart: puts a changed config of an engine into effect, and restores the old one where the engine does not run
// with it.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_mode.h"
#include "core/report/setup_report.h"
#include "kernel/files/host.h"
#include "services/setup/engine_setup.h"

namespace hf::setup {

struct EngineControl {
  // Runs a program of the host and returns its output.
  std::function<Result<std::string>(const std::vector<std::string>& arguments, std::chrono::milliseconds limit)> run;
  std::function<void(std::chrono::milliseconds)> wait;
  std::chrono::milliseconds delay{0};  // before the config is changed: other hosts do the same now
};

// register_runtime() or undo_registration() with other options than the mode.
using EngineChange = std::function<Result<report::SetupReport>(RunMode mode)>;

// The engine is restarted only if its config was changed, now or by an earlier call whose restart failed. Nothing is
// changed where systemd has no such unit. The containers of docker go on only where it has live-restore.
Result<report::SetupReport> change_and_restart(const kernel::Host& host, const EngineSetupOptions& options,
                                               const EngineChange& change, const EngineControl& control);

}  // namespace hf::setup
