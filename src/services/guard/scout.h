// Scout: the thread that reads at leisure: surveys, upkeep, and now and then a diagnosis of the whole node.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "adapters/config/config.h"
#include "core/report/finding.h"
#include "kernel/bpf_api.h"
#include "kernel/host.h"
#include "services/guard/mailbox.h"
#include "services/guard/survey.h"
#include "services/guard/upkeep.h"

namespace hf::guard {

class Scout {
 public:
  // Called from the scout's thread.
  struct Reports {
    std::function<void(SurveyPtr)> survey;
    std::function<void(std::string)> failed;
    std::function<void(Deed)> deed;
    std::function<void(std::vector<report::Finding>)> findings;
    std::function<void()> reloaded;                                  // systemd has read its units again
    std::function<Result<std::vector<report::Finding>>()> diagnose;  // the doctor's
    std::function<void(const config::Config&)> refresh;              // after a survey of everything
  };

  Scout(const kernel::Host& host, config::Config config, Reports reports);
  Scout(const Scout&) = delete;
  Scout& operator=(const Scout&) = delete;
  ~Scout();

  void ask(Care care);  // for a survey soon
  // Tells it to end, and waits so long. False: it still reads, which may take as long as others like. It is never left
  // in the middle of what it does to a container.
  bool ends_within(std::chrono::milliseconds limit);
  void set_config(const config::Config& config);

 private:
  void work();
  void survey_if_due(std::uint64_t now);
  void look_after(const Survey& survey, Care care);
  void diagnose_if_due(std::uint64_t now);
  [[nodiscard]] int milliseconds_to_wait(std::uint64_t now) const;
  void wait(int milliseconds);

  config::Config config_;
  Reports reports_;
  std::unique_ptr<kernel::Bpf> bpf_;
  std::unique_ptr<kernel::Seats> seats_;
  Surveyor surveyor_;
  Upkeep upkeep_;
  Mailbox mailbox_;
  bool stops_ = false;
  std::atomic<bool> is_leaving_ = false;
  std::atomic<bool> is_acting_ = false;
  std::atomic<bool> has_ended_ = false;
  Care care_ = Care::everything;
  std::vector<std::uint64_t> surveys_due_;  // times
  std::uint64_t last_survey_ = 0;
  std::uint64_t survey_took_ = 0;
  bool wants_diagnosis_ = true;
  std::uint64_t last_diagnosis_ = 0;
  std::uint64_t diagnosis_took_ = 0;
  std::thread thread_;
};

}  // namespace hf::guard
