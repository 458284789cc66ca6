// State: kubelet's files that say which containers have which CPUs: checked, written safely, and rebuilt when damaged.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/cpu/policy.h"
#include "core/cpu/rebuild.h"
#include "core/report/cpu_report.h"

namespace hf::cpus {

inline constexpr const char* kKubeletState = "/var/lib/kubelet/cpu_manager_state";

// What a state is checked against.
struct Expected {
  const cpu::Policy* policy = nullptr;
  std::string policy_name;  // "": the one that the file names
};

// Fails where the file cannot be read at all; what is wrong inside it is in the report.
Result<report::CpuStateReport> check_state(const std::string& file, const Expected& expected);

Result<cpu::State> read_state(const std::string& file);  // checked by itself, against no machine
// "namespace/name" of the pods that run on this host, by uid: kubelet's file has uids only.
Result<std::map<std::string, std::string>> read_pod_names();

// Atomic: by rename, after the new file is on the disk.
Result<void> write_state(const std::string& file, const cpu::State& state);

struct RebuiltFile {
  cpu::Rebuilt rebuilt;
  std::string kept_aside;  // where the old file is now; "" where there was none
};

// Rebuilds the state from the containers that run on this host. An old file is kept beside the new one.
Result<cpu::Rebuilt> rebuild_state(const cpu::Policy& policy);
Result<RebuiltFile> replace_state(const std::string& file, const cpu::Rebuilt& rebuilt);

}  // namespace hf::cpus
