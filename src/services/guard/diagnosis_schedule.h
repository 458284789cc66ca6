// DiagnosisSchedule: when the doctor examines the whole host. Times are arguments, in nanoseconds of CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace hf::guard {

class DiagnosisSchedule {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  // Containers may have come or gone, or there is something to examine for the first time.
  void note_survey() { has_news_ = true; }
  // A container has lost something, was repaired, or has other failures than before: its findings are wrong by now.
  void request(std::uint64_t now);

  // When the next one is due; kNever before the first survey.
  [[nodiscard]] std::uint64_t next() const;
  // Records a diagnosis and the CPU time that it took, its children's included. A request that came after its beginning
  // is not fulfilled by it.
  void has_taken(std::uint64_t began, std::uint64_t ended, std::uint64_t cpu_ns);

 private:
  bool has_news_ = false;
  std::optional<std::uint64_t> requested_;
  std::optional<std::uint64_t> last_;
  std::uint64_t cost_ = 0;
};

}  // namespace hf::guard
