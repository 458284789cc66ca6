// CpuCheckpoint: kubelet's cpu_manager_state in all its formats, and kubelet's error for a file it cannot use.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <string_view>

#include "core/cpu/policy.h"
#include "core/cpu/state.h"

namespace hf::kube {

// v1: until 1.17, by container id. v2: until 1.36. v3: 1.36 with pod budgets. v4: from 1.37.
enum class CpuFormat : std::uint8_t { v1, v2, v3, v4 };
std::string to_string(CpuFormat format);

struct CpuCheckpoint {
  CpuFormat format = CpuFormat::v2;
  std::string policy;  // "none", "static"
  cpu::State state;
  std::map<std::string, cpu::CpuSet> by_id;  // of v1: containers whose names are unknown
  bool is_checked = true;                    // false for a checksum of 0, which kubelet does not verify
  std::string older_kubelets = {};           // of v4: how older kubelets would read it, "" if the same
};

// The configuration of the kubelet that would read the file.
struct CpuReader {
  std::string policy;  // "": the policy that the file names
  cpu::PodBudgets budgets = cpu::PodBudgets::ignored;
  std::map<std::string, cpu::Owner> containers = {};  // of the container engine by id, needed for v1
};

struct CheckpointFault {
  std::string what;          // one sentence for the user
  std::string kubelet_says;  // kubelet's error, without the text around it (restart_error)
};

std::expected<CpuCheckpoint, CheckpointFault> parse_cpu_checkpoint(std::string_view text, const CpuReader& reader);

// v2, byte for byte as kubelet writes it.
std::string render_cpu_checkpoint(const std::string& policy, const cpu::State& state);

// What kubelet logs when it exits because of a fault.
std::string restart_error(const std::string& kubelet_says, const std::string& file);

// The checksum of a text.
std::uint32_t fnv1a(std::string_view text);

}  // namespace hf::kube
