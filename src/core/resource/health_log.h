// HealthLog: units that have reported errors, and for how long they are not offered. A unit recovers when it was quiet
// for a while; each relapse makes that while longer.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/resource/offer.h"

namespace hf::resource {

class HealthLog {
 public:
  // Times are nanoseconds of CLOCK_MONOTONIC.
  void report(const std::string& unit, const std::string& why, std::uint64_t now);
  [[nodiscard]] DeviceProblems problems(std::uint64_t now) const;
  [[nodiscard]] std::uint64_t next_recovery(std::uint64_t now) const;  // UINT64_MAX where none is due

 private:
  struct Entry {
    std::string why;
    std::uint64_t until = 0;
    std::uint64_t quiet_time = 0;
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace hf::resource
