// CpuWords: a cpu_manager_state as the texts that stand in it. They are what is hashed, not what they mean.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "adapters/kube/cpu_checkpoint.h"

namespace hf::kube {

struct CpuWords {
  std::string policy;
  std::string shared;
  std::map<std::string, std::map<std::string, std::string>> entries;
  std::map<std::string, std::string> entries_by_id;  // of v1
  std::map<std::string, std::string> pods;
  std::uint64_t checksum = 0;
  std::optional<std::string> data;  // of v4, which keeps its truth in a text of its own beside the fields of v2
  std::optional<std::uint64_t> data_checksum;
};

std::unexpected<CheckpointFault> fault(std::string what, std::string kubelet_says);

std::expected<CpuWords, CheckpointFault> read_cpu_words(std::string_view json);
std::string hashed_text(CpuFormat format, const CpuWords& words);

// A list as Go reads it, or kubelet's complaint: about the words, or, where it begins like this, about the machine.
inline constexpr const char* kNoSuchCpu = "current set of available CPUs \"…\" doesn't match with CPUs ";
std::expected<cpu::CpuSet, std::string> parse_as_go(const std::string& text);

}  // namespace hf::kube
