// SurveySchedule: which survey is due, and when. Times are arguments, in nanoseconds of CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "services/guard/survey.h"

namespace hf::guard {

class SurveySchedule {
 public:
  // Requests a survey soon, and again when a new container has had time to get its devices.
  void request(SurveyScope scope, std::uint64_t now);
  void request_at_once(SurveyScope scope, std::uint64_t now);

  // The survey to take now, if any.
  [[nodiscard]] std::optional<SurveyScope> due(std::uint64_t now) const;
  // Records that a survey ended at `now` and cost `cpu_ns` of CPU time.
  void has_taken(SurveyScope scope, std::uint64_t now, std::uint64_t cpu_ns);
  // The latest time to call `due` again.
  [[nodiscard]] std::uint64_t next(std::uint64_t now) const;

 private:
  [[nodiscard]] std::uint64_t full_survey_at() const;
  [[nodiscard]] std::uint64_t not_before() const;

  SurveyScope scope_ = SurveyScope::everything;
  std::vector<std::uint64_t> requested_;  // times, in order
  std::uint64_t last_ = 0;
  std::uint64_t last_full_ = 0;
  std::uint64_t cost_ = 0;  // CPU time of the last survey
  std::uint64_t full_cost_ = 0;
};

}  // namespace hf::guard
