#include "core/report/fleet_member.h"

#include <algorithm>
#include <map>
#include <set>

namespace hf::report {
namespace {

constexpr std::string_view kNotScheduled = "(not scheduled)";

bool has_container(const PodEntry& pod, const std::string& container) {
  return std::ranges::find(pod.containers, container) != pod.containers.end();
}

// While the DaemonSet is updated, a node has a pod that ends and one that starts.
int rank_of(const PodEntry& pod) {
  const bool is_running = pod.phase == "Running";
  return (is_running && !pod.is_ending ? 4 : 0) + (is_running ? 2 : 0) + (pod.is_ready ? 1 : 0);
}

std::string obstacle_of(const PodEntry& pod) {
  return pod.phase == "Running" ? "" : "pod " + title_of(pod) + " is " + (pod.phase.empty() ? "unknown" : pod.phase);
}

FleetMember member_of(const PodEntry& pod) {
  return {.node = pod.node.empty() ? std::string(kNotScheduled) : pod.node,
          .name_space = pod.name_space,
          .pod = pod.name,
          .obstacle = obstacle_of(pod)};
}

}  // namespace

std::string title_of(const PodEntry& pod) { return pod.name_space + "/" + pod.name; }

std::vector<FleetMember> members_of(const std::vector<PodEntry>& pods, const std::string& container) {
  std::map<std::string, const PodEntry*> by_node;
  std::vector<FleetMember> members;
  for (const PodEntry& pod : pods) {
    if (!has_container(pod, container)) {
      continue;
    }
    if (pod.node.empty()) {
      members.push_back(member_of(pod));
      continue;
    }
    const PodEntry*& chosen = by_node[pod.node];
    chosen = chosen == nullptr || rank_of(pod) > rank_of(*chosen) ? &pod : chosen;
  }
  for (const auto& [node, pod] : by_node) {
    members.push_back(member_of(*pod));
  }
  std::ranges::sort(members, {}, [](const FleetMember& member) { return std::pair(member.node, member.pod); });
  return members;
}

std::vector<std::string> namespaces_of(const std::vector<PodEntry>& pods, const std::string& container) {
  std::set<std::string> found;
  for (const PodEntry& pod : pods) {
    if (has_container(pod, container)) {
      found.insert(pod.name_space);
    }
  }
  return {found.begin(), found.end()};
}

std::vector<FleetMember> select_members(const std::vector<FleetMember>& members,
                                        const std::vector<std::string>& nodes) {
  std::vector<std::string> names = nodes;
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  std::vector<FleetMember> selected;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(members, name, &FleetMember::node);
    selected.push_back(
        found != members.end()
            ? *found
            : FleetMember{.node = name, .name_space = {}, .pod = {}, .obstacle = "no pod of holdfast is there"});
  }
  return selected;
}

bool is_cluster_name(std::string_view text) {
  constexpr std::size_t kLongest = 253;
  constexpr std::string_view kInside = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  return !text.empty() && text.size() <= kLongest && text.front() != '-' && text.front() != '.' &&
         text.find_first_not_of(kInside) == std::string_view::npos;
}

}  // namespace hf::report
