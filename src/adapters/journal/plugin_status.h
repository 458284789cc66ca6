// PluginStatus: what holdfast-kube offers, in a file for holdfast and holdfastd.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/journal/run_file.h"
#include "core/base/result.h"
#include "core/resource/offer.h"
#include "kernel/files/host.h"

namespace hf::journal {

inline constexpr const char* kPluginStatusFile = "/run/holdfast/kube.json";

struct PluginStatus {
  RunningProgram program;
  std::vector<resource::OfferStatus> resources;
};

std::string render_plugin_status(const PluginStatus& status);
Result<PluginStatus> parse_plugin_status(std::string_view text);

// Replaces the file by rename, in a directory that only root may write.
Result<void> write_plugin_status(const kernel::Host& host, const PluginStatus& status);
// Absent if holdfast-kube is not running.
std::optional<PluginStatus> read_plugin_status(const kernel::Host& host);

}  // namespace hf::journal
