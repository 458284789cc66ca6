#include "kernel/cpu/cpuset.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/base/text.h"
#include "core/container/cgroup/mount.h"
#include "kernel/files/file.h"

namespace hf::kernel {
namespace {

struct Place {
  std::string point;  // where the hierarchy is mounted
  std::string path;   // of the process in it
};

// A line of /proc/PID/cgroup is "number:controllers:path".
std::optional<std::string> path_in(std::string_view cgroups, bool (*is_wanted)(std::string_view controllers)) {
  for (const std::string_view line : split(cgroups, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second != std::string_view::npos && is_wanted(line.substr(first + 1, second - first - 1))) {
      return std::string(line.substr(second + 1));
    }
  }
  return std::nullopt;
}

std::optional<Place> place_of(const Host& host, const std::string& cgroups) {
  const std::optional<std::string> v1 =
      path_in(cgroups, [](std::string_view controllers) { return list_contains(controllers, "cpuset"); });
  if (v1) {
    const Result<std::string> mountinfo = read_text(host.root.get(), "proc/self/mountinfo");
    for (const container::Mount& mount : container::parse_mountinfo(mountinfo.value_or(""))) {
      if (mount.type == "cgroup" && mount.root == "/" && list_contains(base_name(mount.point), "cpuset")) {
        return Place{mount.point, *v1};
      }
    }
  }
  const std::optional<std::string> v2 =
      path_in(cgroups, [](std::string_view controllers) { return controllers.empty(); });
  return v2 && host.v2 ? std::optional(Place{host.v2->point, *v2}) : std::nullopt;
}

std::string truncate_after(const std::string& path, const std::string& own) {
  const std::size_t found = own.empty() ? std::string::npos : path.find("/" + own + "/");
  return found == std::string::npos ? path : path.substr(0, found + 1 + own.size());
}

}  // namespace

Result<cpu::CpuSet> read_cpuset(const Host& host, container::Pid pid, const std::string& own) {
  const std::string cgroups = TRY(read_text(host.root.get(), "proc/" + std::to_string(pid.value) + "/cgroup"));
  const std::optional<Place> place = place_of(host, cgroups);
  if (!place) {
    return fail(std::errc::not_supported, "no cgroup of process " + std::to_string(pid.value) + " has a cpuset");
  }
  for (std::string path = truncate_after(place->path, own);; path = path.substr(0, path.rfind('/'))) {
    for (const char* name : {"/cpuset.effective_cpus", "/cpuset.cpus.effective"}) {
      const Result<std::string> text = read_text(host.root.get(), below_root(place->point + path + name));
      if (text && !trim(*text).empty()) {
        return cpu::parse_cpu_set(*text);
      }
    }
    if (path.empty() || path == "/") {
      return fail(std::errc::no_such_file_or_directory,
                  "no cpuset for process " + std::to_string(pid.value) + " below " + place->point);
    }
  }
}

}  // namespace hf::kernel
