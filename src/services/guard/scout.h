// Scout: the thread that takes surveys. It waits for no container: a new one is known, and guarded, before any is
// looked into.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "adapters/config/config.h"
#include "kernel/host.h"
#include "services/guard/mailbox.h"
#include "services/guard/survey.h"

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
  [[nodiscard]] int milliseconds_to_wait(std::uint64_t now) const;
  void wait(int milliseconds);

  config::Config config_;
  Reports reports_;
  Surveyor surveyor_;
  Mailbox mailbox_;
  bool stops_ = false;
  std::atomic<bool> has_ended_ = false;
  Care care_ = Care::everything;
  std::vector<std::uint64_t> surveys_due_;  // times
  std::uint64_t last_survey_ = 0;
  std::uint64_t last_full_survey_ = 0;
  std::uint64_t survey_cost_ = 0;       // CPU time
  std::uint64_t full_survey_cost_ = 0;  // likewise
  std::thread thread_;
};

}  // namespace hf::guard
