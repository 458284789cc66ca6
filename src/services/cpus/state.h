// State: files that say who has which CPUs: looked through, written safely, and made again when they are lost.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/cpu/policy.h"
#include "core/cpu/rebuild.h"
#include "core/report/cpu_report.h"

namespace hf::cpus {

inline constexpr const char* kKubeletState = "/var/lib/kubelet/cpu_manager_state";

// What to hold a state against.
struct Expected {
  const cpu::Policy* policy = nullptr;
  std::string policy_name;  // "": whichever the file names
};

// Fails where the file cannot be read at all; what is wrong inside it is in the report.
Result<report::CpuStateReport> check_state(const std::string& file, const Expected& expected);

Result<cpu::State> read_state(const std::string& file);  // its words alone, held against no machine

// By rename, on the disk before anybody can read it.
Result<void> write_state(const std::string& file, const cpu::State& state);

struct RebuiltFile {
  cpu::Rebuilt rebuilt;
  std::string kept_aside;  // where the old file is now; "" where there was none
};

// From the containers that run on this node. What was there is kept beside it.
Result<cpu::Rebuilt> rebuild_state(const cpu::Policy& policy);
Result<RebuiltFile> replace_state(const std::string& file, const cpu::Rebuilt& rebuilt);

}  // namespace hf::cpus
