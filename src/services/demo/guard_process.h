// GuardProcess: a real holdfastd, with its own configuration and journal.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/report/blame.h"
#include "kernel/files/host.h"
#include "kernel/process/command.h"
#include "services/demo/interrupts.h"

namespace hf::demo {

// The path of holdfastd: beside our own program, in the build tree, or in $PATH; "" where there is none.
std::string find_daemon();

// A configuration that heals these containers and only observes all others.
std::string guard_config(const std::vector<std::string>& containers);

class GuardProcess {
 public:
  static Result<GuardProcess> start(const std::string& program, const std::string& directory,
                                    const std::vector<std::string>& containers);

  // Waits until it has surveyed the host once. Fails with std::errc::interrupted after a signal.
  Result<void> wait_until_ready(Interrupts& interrupts);

  // The records it has written since the last call.
  std::vector<report::BlameRecord> take_records();

  [[nodiscard]] std::string watching() const;  // "v2=tracepoints v1=files"
  [[nodiscard]] bool is_alive() { return !running_.ends_within(std::chrono::milliseconds(0)); }
  [[nodiscard]] std::string last_output_line() const;
  void end();  // with SIGTERM first, as a service manager does

 private:
  GuardProcess(kernel::Running running, kernel::Fd readiness, std::string journal)
      : running_(std::move(running)), readiness_(std::move(readiness)), journal_(std::move(journal)) {}

  kernel::Running running_;
  kernel::Fd readiness_;  // where it sends READY=1
  std::string journal_;
  kernel::Fd file_;
  std::string rest_;  // the start of a line that is not complete yet
};

}  // namespace hf::demo
