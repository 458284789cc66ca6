#include "services/setup/docker_gpus.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "core/base/text.h"
#include "kernel/files/device_node.h"
#include "kernel/files/file.h"

namespace hf::setup {
namespace {

constexpr const char* kHook = "nvidia-container-runtime-hook";
constexpr std::string_view kRuntime = "holdfast-runtime";
// PATH of services below systemd.
constexpr std::array<const char*, 4> kDirectories = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"};

struct FoundHook {
  std::string path;
  bool is_ours = false;
};

std::optional<FoundHook> find_hook(const kernel::Host& host) {
  for (const std::string directory : kDirectories) {
    const std::string path = directory + "/" + kHook;
    const auto links = kernel::read_links(host, directory);
    const auto link = links.find(kHook);
    if (link != links.end() && base_name(link->second) == kRuntime) {
      return FoundHook{path, true};
    }
    if (link != links.end() || kernel::exists(host.root.get(), kernel::below_root(path))) {
      return FoundHook{path, false};
    }
  }
  return std::nullopt;
}

// Beside the runtime, if docker looks there.
std::string path_for(const std::string& program) {
  const std::string directory = program.substr(0, program.rfind('/'));
  const bool is_searched = std::ranges::find(kDirectories, directory) != kDirectories.end();
  return (is_searched ? directory : "/usr/local/bin") + "/" + kHook;
}

}  // namespace

Result<void> offer_gpus(const kernel::Host& host, const std::string& program, report::SetupReport& report) {
  const std::optional<FoundHook> found = find_hook(host);
  if (found && !found->is_ours) {
    report.notes.push_back("--gpus: docker finds NVIDIA's " + found->path +
                           "; the runtime holdfast drops it from containers and gives them their GPUs itself");
    return {};
  }
  if (found) {
    return {};
  }
  const std::string path = path_for(program);
  TRY(report.is_done ? kernel::make_symlink_on(host, path, program) : Result<void>());
  report.steps.push_back("create " + path + ", a symlink to " + program + ": docker offers --gpus where it is");
  report.notes.emplace_back(
      "--gpus: docker looks for this program only when it starts, and a restart stops containers unless live-restore "
      "is on; after systemctl reload docker only --runtime holdfast -e NVIDIA_VISIBLE_DEVICES=all works");
  return {};
}

Result<void> stop_offering_gpus(const kernel::Host& host, report::SetupReport& report) {
  const std::optional<FoundHook> found = find_hook(host);
  if (found && found->is_ours) {
    TRY(report.is_done ? kernel::remove_symlink_on(host, found->path) : Result<void>());
    report.steps.push_back("remove " + found->path);
  }
  return {};
}

}  // namespace hf::setup
