// CpuMessages: the fields of a cpu_manager_state as text, which is what the checksum is computed from, and kubelet's
// error messages about them.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "adapters/kube/cpu_checkpoint.h"

namespace hf::kube {

struct CpuFields {
  std::string policy;
  std::string shared;
  std::map<std::string, std::map<std::string, std::string>> entries;
  std::map<std::string, std::string> entries_by_id;  // of v1
  std::map<std::string, std::string> pods;
  std::uint64_t checksum = 0;
  std::optional<std::string> data;  // of v4, which keeps its state in a text of its own beside the fields of v2
  std::optional<std::uint64_t> data_checksum;
};

std::unexpected<CheckpointFault> fault(std::string what, std::string kubelet_says);

std::expected<CpuFields, CheckpointFault> read_cpu_fields(std::string_view json);
// The text whose hash is the checksum: a Go value as a debug printer writes it.
std::string hashed_text(CpuFormat format, const CpuFields& fields);

enum class CpuListFault : std::uint8_t { no_list, no_such_cpu };

struct InvalidCpuList {
  CpuListFault fault = CpuListFault::no_list;
  std::string kubelet_says;
};

// A CPU list as Go parses it.
std::expected<cpu::CpuSet, InvalidCpuList> parse_as_go(const std::string& text);

}  // namespace hf::kube
