#include "node/group.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/text.h"

namespace hf::node {
namespace {

using container::CgroupWords;
using container::Pid;

// All processes with the same lines in /proc/PID/cgroup.
struct Place {
  std::string lines;
  std::map<std::string, std::string> v1;
  std::optional<std::string> v2;
  std::optional<CgroupWords> words;
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
  // Of two hierarchies that both know it the one that decides about devices has the say.
  if (const auto devices = place.v1.find("devices"); devices != place.v1.end()) {
    place.words = container::read_cgroup_words(devices->second);
  }
  if (!place.words && place.v2) {
    place.words = container::read_cgroup_words(*place.v2);
  }
  // systemd may have moved it out of its devices cgroup: then the others still know it.
  for (const auto& [controller, path] : place.v1) {
    place.words = place.words ? place.words : container::read_cgroup_words(path);
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

// crun puts the container into a leaf of its scope: the scope is the container's as well.
std::string without_leaf(std::string path) {
  constexpr std::string_view kLeaf = "/container";
  if (path.ends_with(".scope" + std::string(kLeaf))) {
    path.resize(path.size() - kLeaf.size());
  }
  return path;
}

Group group_of(const Place& place, Pid init) {
  const std::string cgroup = place.words ? place.words->cgroup : without_leaf(path_that_decides(place));
  return {place.words, place.v1, place.v2, init, place.lines, cgroup};
}

struct Inhabitant {
  const Place* place = nullptr;
  Pid pid;
};

// The oldest process that was started from outside: what it starts itself, also in namespaces of its own, is younger. A
// process of the host may be moved into a container's cgroup, and is not its first for that.
class InitFinder {
 public:
  explicit InitFinder(const kernel::Host& host) : host_(host), host_mounts_(kernel::read_host_mount_namespaces(host)) {}

  [[nodiscard]] std::optional<Inhabitant> find(const std::vector<Inhabitant>& inhabitants) const {
    std::set<Pid> inside;
    for (const Inhabitant& inhabitant : inhabitants) {
      inside.insert(inhabitant.pid);
    }
    std::optional<Inhabitant> oldest;
    std::tuple<bool, bool, std::int64_t> best;
    for (const Inhabitant& inhabitant : inhabitants) {
      const Result<kernel::Process> process = kernel::read_process(host_, inhabitant.pid);
      if (!process || process->has_ended) {
        continue;
      }
      const std::tuple rank = {is_of_host(inhabitant.pid), inside.contains(process->parent), process->started_at};
      if (!oldest || rank < best) {
        best = rank;
        oldest = inhabitant;
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

std::optional<Group> find_nameless(const kernel::Host& host, const InitFinder& finder, const Place& place) {
  std::vector<Inhabitant> inhabitants;
  inhabitants.reserve(place.pids.size());
  for (const Pid pid : place.pids) {
    inhabitants.push_back({&place, pid});
  }
  const std::optional<Inhabitant> init = finder.find(inhabitants);
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
  return place.words ? std::optional(group_of(place, process)) : std::nullopt;
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
  std::map<std::string, std::vector<Inhabitant>> named;
  std::vector<Group> groups;
  const InitFinder finder(host);
  for (const auto& [lines, place] : places) {
    if (place.words) {
      for (const Pid pid : place.pids) {
        named[place.words->cgroup].push_back({&place, pid});
      }
    } else if (!is_at_root(place)) {
      if (std::optional<Group> group = find_nameless(host, finder, place)) {
        groups.push_back(*std::move(group));
      }
    }
  }
  for (auto& [cgroup, inhabitants] : named) {
    if (const std::optional<Inhabitant> init = finder.find(inhabitants)) {
      groups.push_back(group_of(*init->place, init->pid));
    }
  }
  return groups;
}

}  // namespace hf::node
