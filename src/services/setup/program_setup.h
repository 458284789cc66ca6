// ProgramSetup: copies the runtime's program to a directory of the host. Engines and CDI hooks run it there, when the
// other programs of holdfast are in a container.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/base/run_mode.h"
#include "core/report/setup_report.h"

namespace hf::setup {

struct ProgramSetupOptions {
  std::string source;     // the program
  std::string directory;  // its copy has the same name
  RunMode mode = RunMode::carry_out;
};

// The copy is replaced by rename: a container that starts meanwhile runs the old program or the new one.
Result<report::SetupReport> install_program(const ProgramSetupOptions& options);
Result<report::SetupReport> remove_program(const ProgramSetupOptions& options);

}  // namespace hf::setup
