// SurveySchedule: which survey is due, and when. Knows no clock but its arguments, nanoseconds of CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "services/guard/survey.h"

namespace hf::guard {

class SurveySchedule {
 public:
  // Something has changed: a survey soon, and again when a new container has had time to get its devices.
  void ask(Care care, std::uint64_t now);
  void ask_at_once(Care care, std::uint64_t now);

  // The survey to take now, if any.
  [[nodiscard]] std::optional<Care> due(std::uint64_t now) const;
  // It was taken, ended at `now` and cost so much CPU time.
  void has_taken(Care care, std::uint64_t now, std::uint64_t cpu_ns);
  // When to ask `due` again at the latest.
  [[nodiscard]] std::uint64_t next(std::uint64_t now) const;

 private:
  [[nodiscard]] std::uint64_t full_survey_at() const;
  [[nodiscard]] std::uint64_t not_before() const;

  Care care_ = Care::everything;
  std::vector<std::uint64_t> asked_;  // times, in order
  std::uint64_t last_ = 0;
  std::uint64_t last_full_ = 0;
  std::uint64_t cost_ = 0;  // CPU time of the last survey
  std::uint64_t full_cost_ = 0;
};

}  // namespace hf::guard
