// Scout: the thread that takes surveys. It waits for no container: a new one is known, and guarded, before any is
// looked into.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "adapters/config/config.h"
#include "kernel/host.h"
#include "services/guard/mailbox.h"
#include "services/guard/survey.h"
#include "services/guard/survey_schedule.h"

namespace hf::guard {

class Scout {
 public:
  // Called from the scout's thread.
  struct Reports {
    std::function<void(SurveyPtr, Care)> survey;
    std::function<void(std::string)> failed;
    std::function<void(const config::Config&)> refresh;  // after a survey of everything
  };

  Scout(const kernel::Host& host, config::Config config, Reports reports);
  Scout(const Scout&) = delete;
  Scout& operator=(const Scout&) = delete;
  ~Scout();

  void ask(Care care);  // for a survey soon
  // Tells it to end, and waits so long. False: it still reads.
  bool ends_within(std::chrono::milliseconds limit);
  void set_config(const config::Config& config);

 private:
  void work();
  void survey_if_due(std::uint64_t now);
  void wait(std::uint64_t now);

  config::Config config_;
  Reports reports_;
  Surveyor surveyor_;
  Mailbox mailbox_;
  bool stops_ = false;
  std::atomic<bool> has_ended_ = false;
  SurveySchedule schedule_;
  std::thread thread_;
};

}  // namespace hf::guard
