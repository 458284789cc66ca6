#include "services/setup/program_setup.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "core/base/text.h"
#include "kernel/files/file.h"

namespace hf::setup {
namespace {

using report::SetupReport;

constexpr std::uint32_t kMode = 0755;

std::string target_of(const ProgramSetupOptions& options) {
  return options.directory + "/" + std::string(base_name(options.source));
}

SetupReport report_of(const ProgramSetupOptions& options) {
  SetupReport report;
  report.subject = "runtime";
  report.is_done = options.mode == RunMode::carry_out;
  return report;
}

// An older copy may have been made with another mode.
bool is_current(const std::string& path, const std::string& text) {
  struct stat status{};
  const Result<std::string> present = kernel::read_regular_file(path);
  return present && *present == text && ::stat(path.c_str(), &status) == 0 && status.st_uid == 0 &&
         (status.st_mode & 07777U) == kMode;
}

}  // namespace

Result<SetupReport> install_program(const ProgramSetupOptions& options) {
  SetupReport report = report_of(options);
  const std::string path = target_of(options);
  const std::string text = TRY(kernel::read_regular_file(options.source));
  if (is_current(path, text)) {
    report.verdict = path + " is there already: nothing to do";
    return report;
  }
  report.verdict = path + (report.is_done ? " is there now" : " would be written");
  report.steps.push_back("copy " + options.source + " to " + path);
  if (report.is_done) {
    TRY(kernel::make_directories(AT_FDCWD, options.directory));
    TRY(kernel::replace_file(AT_FDCWD, path, {.text = text, .mode = kMode, .is_synced = true}));
  }
  return report;
}

Result<SetupReport> remove_program(const ProgramSetupOptions& options) {
  SetupReport report = report_of(options);
  const std::string path = target_of(options);
  if (!kernel::exists(AT_FDCWD, path)) {
    report.verdict = path + " is not there: nothing to do";
    return report;
  }
  report.verdict = path + (report.is_done ? " is gone" : " would be removed");
  report.steps.push_back("remove " + path);
  TRY(report.is_done ? kernel::remove_file(AT_FDCWD, path) : Result<void>());
  return report;
}

}  // namespace hf::setup
