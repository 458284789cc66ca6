// CpuCheckpoint: kubelet's cpu_manager_state in all its formats, and what kubelet says to a file it cannot use.
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
  std::map<std::string, cpu::CpuSet> by_id;  // of v1: containers nobody could name
  bool is_checked = true;                    // a checksum of 0 is no checksum
  std::string older_kubelets = {};           // of v4: what they would make of it, "" where the same
};

// What the kubelet that would read it is told.
struct CpuReader {
  std::string policy;  // "": whichever the file names
  cpu::PodBudgets budgets = cpu::PodBudgets::ignored;
  std::map<std::string, cpu::Owner> containers = {};  // of the engine, by id: what v1 needs
};

struct CheckpointFault {
  std::string what;          // one sentence for people
  std::string kubelet_says;  // its error, without what it puts around every one of them
};

std::expected<CpuCheckpoint, CheckpointFault> parse_cpu_checkpoint(std::string_view text, const CpuReader& reader);

// v2, byte for byte as kubelet writes it.
std::string render_cpu_checkpoint(const std::string& policy, const cpu::State& state);

// What kubelet logs when it ends because of a fault.
std::string restart_error(const std::string& kubelet_says, const std::string& file);

// The text whose hash is the checksum: a Go value as its debugger would print it.
std::string hashed_text(CpuFormat format, const std::string& policy, const cpu::State& state);
std::uint32_t fnv1a(std::string_view text);

}  // namespace hf::kube
