#include "services/setup/docker_gpus.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

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
  std::string target = {};  // of ours
};

// What is at each of docker's directories. Docker finds no symlink to a program that was removed; ours is returned.
std::vector<FoundHook> find_hooks(const kernel::Host& host) {
  std::vector<FoundHook> found;
  for (const std::string directory : kDirectories) {
    const std::string path = directory + "/" + kHook;
    const auto links = kernel::read_links(host, directory);
    const auto link = links.find(kHook);
    if (link != links.end() && base_name(link->second) == kRuntime) {
      found.push_back({path, true, link->second});
    } else if (kernel::exists(host.root.get(), kernel::below_root(path))) {
      found.push_back({path, false});
    }
  }
  return found;
}

// Beside the runtime, if docker looks there.
std::string path_for(const std::string& program) {
  const std::string directory = program.substr(0, program.rfind('/'));
  const bool is_searched = std::ranges::find(kDirectories, directory) != kDirectories.end();
  return (is_searched ? directory : "/usr/local/bin") + "/" + kHook;
}

}  // namespace

Result<void> offer_gpus(const kernel::Host& host, const std::string& program, report::SetupReport& report) {
  std::vector<FoundHook> found = find_hooks(host);
  std::string path = path_for(program);
  std::erase_if(found, [&](const FoundHook& hook) {
    const bool is_stale = hook.is_ours && hook.target != program;  // of an installation that was moved or removed
    path = is_stale ? hook.path : path;
    return is_stale;
  });
  if (!found.empty() && !found.front().is_ours) {
    report.notes.push_back("--gpus: docker finds NVIDIA's " + found.front().path +
                           "; the runtime holdfast drops it from containers and gives them their GPUs itself");
  }
  if (!found.empty()) {
    return {};
  }
  TRY(report.is_done ? kernel::make_symlink_on(host, path, program) : Result<void>());
  report.steps.push_back("create " + path + ", a symlink to " + program + ": docker offers --gpus where it is");
  report.notes.emplace_back(
      "--gpus: docker looks for this program only when it starts, and a restart stops containers unless live-restore "
      "is on; after systemctl reload docker only --runtime holdfast -e NVIDIA_VISIBLE_DEVICES=all works");
  return {};
}

Result<void> stop_offering_gpus(const kernel::Host& host, report::SetupReport& report) {
  for (const FoundHook& found : find_hooks(host)) {
    if (found.is_ours) {
      TRY(report.is_done ? kernel::remove_symlink_on(host, found.path) : Result<void>());
      report.steps.push_back("remove " + found.path);
    }
  }
  return {};
}

GpuLinks read_gpu_links(const kernel::Host& host) {
  GpuLinks links;
  for (const FoundHook& found : find_hooks(host)) {
    if (found.is_ours) {
      links.emplace(found.path, found.target);
    }
  }
  return links;
}

Result<void> restore_gpu_links(const kernel::Host& host, const GpuLinks& before) {
  const GpuLinks now = read_gpu_links(host);
  for (const auto& [path, target] : now) {
    TRY(before.contains(path) ? Result<void>() : kernel::remove_symlink_on(host, path));
  }
  for (const auto& [path, target] : before) {
    const auto found = now.find(path);
    const bool is_there = found != now.end() && found->second == target;
    TRY(is_there ? Result<void>() : kernel::make_symlink_on(host, path, target));
  }
  return {};
}

}  // namespace hf::setup
