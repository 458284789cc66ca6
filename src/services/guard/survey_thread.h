// SurveyThread: the thread that takes surveys. It enters no container, so none can block it: a new container is known,
// and guarded, before any is probed from inside.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "adapters/config/config.h"
#include "kernel/files/host.h"
#include "kernel/net/event_loop.h"
#include "services/guard/loop_thread.h"
#include "services/guard/survey.h"
#include "services/guard/survey_schedule.h"

namespace hf::guard {

class SurveyThread {
 public:
  // Called from the survey thread.
  struct Reports {
    std::function<void(SurveyPtr, SurveyScope)> survey;
    std::function<void(std::string)> failed;
    std::function<void(const config::Config&)> refresh;  // after a survey of everything
    Surveyor::Listener census;                           // may be empty
  };

  SurveyThread(const kernel::Host& host, config::Config config, Reports reports);
  SurveyThread(const SurveyThread&) = delete;
  SurveyThread& operator=(const SurveyThread&) = delete;

  void request(SurveyScope scope);                                      // a survey soon
  void set_config(const config::Config& config, std::uint64_t number);  // `number`: see Survey::config
  LoopThread& thread() { return thread_; }

 private:
  void survey_if_due(std::uint64_t now);

  config::Config config_;
  std::uint64_t config_number_ = 0;
  Reports reports_;
  Surveyor surveyor_;
  kernel::EventLoop loop_;
  SurveySchedule schedule_;
  LoopThread thread_;
};

}  // namespace hf::guard
