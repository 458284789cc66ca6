// GuardProcess: the real holdfastd, with a configuration and a journal of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/report/blame.h"
#include "kernel/command.h"
#include "kernel/host.h"
#include "services/demo/interrupts.h"

namespace hf::demo {

// Beside our own program, in the build tree, or in $PATH; "" where there is none.
std::string find_daemon();

// A guard that runs on this node already.
std::optional<container::Pid> find_running_guard(const kernel::Host& host);

// It looks on everywhere and heals these containers only.
std::string guard_config(const std::vector<std::string>& containers);

class GuardProcess {
 public:
  static Result<GuardProcess> start(const std::string& program, const std::string& folder,
                                    const std::vector<std::string>& containers);

  // Until it has looked at the whole node once. Fails with interrupted where we are to end.
  Result<void> wait_until_ready(Interrupts& interrupts);

  // What it has written down since the last time.
  std::vector<report::BlameRecord> take_records();

  [[nodiscard]] std::string watching() const;  // "v2=tracepoints v1=files"
  [[nodiscard]] bool is_alive() { return !running_.ends_within(std::chrono::milliseconds(0)); }
  [[nodiscard]] std::string last_words() const;
  void end();  // as a service manager would

 private:
  GuardProcess(kernel::Running running, kernel::Fd readiness, std::string journal)
      : running_(std::move(running)), readiness_(std::move(readiness)), journal_(std::move(journal)) {}

  kernel::Running running_;
  kernel::Fd readiness_;  // where it says READY=1
  std::string journal_;
  kernel::Fd file_;
  std::string rest_;  // of a line that was not whole yet
};

}  // namespace hf::demo
