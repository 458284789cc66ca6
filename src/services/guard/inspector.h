// Inspector: the thread that does what may wait for others: looks from inside containers, nodes, systemd's units,
// locks, and now and then a diagnosis of the whole host. Surveys do not wait for it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/report/finding.h"
#include "kernel/bpf_api.h"
#include "kernel/host.h"
#include "services/guard/mailbox.h"
#include "services/guard/survey.h"
#include "services/guard/upkeep.h"
#include "services/guard/view.h"

namespace hf::guard {

class Inspector {
 public:
  // Called from the inspector's thread.
  struct Reports {
    std::function<void(View)> view;
    std::function<void(Deed)> deed;
    std::function<void(std::vector<report::Finding>)> findings;
    std::function<void()> reloaded;                                  // systemd has read its units again
    std::function<Result<std::vector<report::Finding>>()> diagnose;  // the doctor's
  };

  Inspector(const kernel::Host& host, Reports reports);
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;
  ~Inspector();

  void inspect(SurveyPtr survey, Care care);
  // Tells it to end, and waits so long. False: it still reads, which may take as long as others like. It is never left
  // in the middle of what it does to a container.
  bool ends_within(std::chrono::milliseconds limit);

 private:
  void work();
  void look_after_units_and_locks();
  void look_inside_one(std::uint64_t now);
  void diagnose_if_due(std::uint64_t now);
  void tell(std::vector<Deed> deeds);
  [[nodiscard]] int milliseconds_to_wait(std::uint64_t now) const;

  const kernel::Host& host_;
  Reports reports_;
  std::unique_ptr<kernel::Bpf> bpf_;
  std::unique_ptr<kernel::Seats> seats_;
  Upkeep upkeep_;
  LookSchedule schedule_;
  Mailbox mailbox_;
  SurveyPtr survey_;
  bool is_new_survey_ = false;
  bool stops_ = false;
  std::atomic<bool> is_leaving_ = false;
  std::atomic<bool> is_acting_ = false;
  std::atomic<bool> has_ended_ = false;
  std::uint64_t looked_at_all_ = 0;
  std::uint64_t looks_cpu_ = 0;  // since then
  bool wants_diagnosis_ = false;
  std::uint64_t last_diagnosis_ = 0;
  std::uint64_t diagnosis_cpu_ = 0;
  std::thread thread_;
};

}  // namespace hf::guard
