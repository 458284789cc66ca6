#include "host/group.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/text.h"

namespace hf::host {
namespace {

using container::ParsedCgroupName;
using container::Pid;

// All processes with the same lines in /proc/PID/cgroup.
struct Place {
  std::string lines;
  std::map<std::string, std::string> v1;
  std::optional<std::string> v2;
  std::optional<ParsedCgroupName> name;
  std::vector<Pid> pids;
};

Place parse_place(std::string_view lines) {
  Place place;
  place.lines = lines;
  for (const std::string_view line : split(lines, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) {
      continue;
    }
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers.empty()) {
      place.v2 = path;
      continue;
    }
    for (const std::string_view controller : split(controllers, ',')) {
      place.v1[std::string(controller)] = path;
    }
  }
  // Where two hierarchies name the container, the one that decides about devices wins.
  if (const auto devices = place.v1.find("devices"); devices != place.v1.end()) {
    place.name = container::parse_cgroup_name(devices->second);
  }
  if (!place.name && place.v2) {
    place.name = container::parse_cgroup_name(*place.v2);
  }
  // systemd may have moved it out of its devices cgroup: then the other hierarchies still name it.
  for (const auto& [controller, path] : place.v1) {
    place.name = place.name ? place.name : container::parse_cgroup_name(path);
  }
  return place;
}

bool is_at_root(const Place& place) {
  const auto devices = place.v1.find("devices");
  return (devices == place.v1.end() || devices->second == "/") && (!place.v2 || *place.v2 == "/");
}

std::string path_that_decides(const Place& place) {
  const auto devices = place.v1.find("devices");
  const bool by_v1 = devices != place.v1.end() && devices->second != "/";
  return by_v1 ? devices->second : place.v2.value_or("/");
}

// crun puts the container into a leaf of its scope: the scope belongs to the container as well.
std::string without_leaf(std::string path) {
  constexpr std::string_view kLeaf = "/container";
  if (path.ends_with(".scope" + std::string(kLeaf))) {
    path.resize(path.size() - kLeaf.size());
  }
  return path;
}

Group group_of(const Place& place, Pid init) {
  const std::string cgroup = place.name ? place.name->cgroup : without_leaf(path_that_decides(place));
  return {place.name, place.v1, place.v2, init, place.lines, cgroup};
}

struct CgroupMember {
  const Place* place = nullptr;
  Pid pid;
};

// Finds the first process of a container: the oldest that was started from outside, as all that it starts itself is
// younger. A process of the host that was moved into the container's cgroup is not its first.
class InitFinder {
 public:
  explicit InitFinder(const kernel::Host& host) : host_(host), host_mounts_(kernel::read_host_mount_namespaces(host)) {}

  [[nodiscard]] std::optional<CgroupMember> find(const std::vector<CgroupMember>& members) const {
    std::set<Pid> inside;
    for (const CgroupMember& member : members) {
      inside.insert(member.pid);
    }
    std::optional<CgroupMember> oldest;
    std::tuple<bool, bool, std::int64_t> best;
    for (const CgroupMember& member : members) {
      const Result<kernel::Process> process = kernel::read_process(host_, member.pid);
      if (!process || process->has_ended) {
        continue;
      }
      const std::tuple rank = {is_of_host(member.pid), inside.contains(process->parent), process->started_at};
      if (!oldest || rank < best) {
        best = rank;
        oldest = member;
      }
    }
    return oldest;
  }

  [[nodiscard]] bool is_of_host(Pid pid) const {
    return std::ranges::find(host_mounts_, kernel::read_namespace(host_, pid, "mnt")) != host_mounts_.end();
  }

 private:
  const kernel::Host& host_;
  std::vector<std::uint64_t> host_mounts_;
};

std::optional<Group> find_unnamed(const kernel::Host& host, const InitFinder& finder, const Place& place) {
  std::vector<CgroupMember> members;
  members.reserve(place.pids.size());
  for (const Pid pid : place.pids) {
    members.push_back({&place, pid});
  }
  const std::optional<CgroupMember> init = finder.find(members);
  if (!init || !kernel::is_first_of_its_namespace(host, init->pid)) {
    return std::nullopt;
  }
  Group group = group_of(place, init->pid);
  group.is_shared = std::ranges::any_of(place.pids, [&finder](Pid other) { return finder.is_of_host(other); });
  return group;
}

}  // namespace

std::optional<Group> find_group_of(const kernel::Host& host, Pid process) {
  const std::string lines = kernel::read_cgroup_lines(host, process);
  const Place place = parse_place(lines);
  return place.name ? std::optional(group_of(place, process)) : std::nullopt;
}

std::vector<Group> find_groups(const kernel::Host& host) {
  std::map<std::string, Place> places;
  for (const Pid pid : kernel::list_processes(host)) {
    std::string lines = kernel::read_cgroup_lines(host, pid);
    if (lines.empty()) {
      continue;
    }
    auto [place, is_new] = places.try_emplace(std::move(lines));
    if (is_new) {
      place->second = parse_place(place->first);
    }
    place->second.pids.push_back(pid);
  }
  std::map<std::string, std::vector<CgroupMember>> named;
  std::vector<Group> groups;
  const InitFinder finder(host);
  for (const auto& [lines, place] : places) {
    if (place.name) {
      for (const Pid pid : place.pids) {
        named[place.name->cgroup].push_back({&place, pid});
      }
    } else if (!is_at_root(place)) {
      if (std::optional<Group> group = find_unnamed(host, finder, place)) {
        groups.push_back(*std::move(group));
      }
    }
  }
  for (auto& [cgroup, members] : named) {
    if (const std::optional<CgroupMember> init = finder.find(members)) {
      groups.push_back(group_of(*init->place, init->pid));
    }
  }
  return groups;
}

}  // namespace hf::host
