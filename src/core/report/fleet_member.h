// FleetMember: a cluster node, and the pod that answers for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hf::report {

// A pod as the API server describes it.
struct PodEntry {
  std::string name_space;
  std::string name;
  std::string node;   // "": it is not scheduled
  std::string phase;  // "Running"
  bool is_ready = false;
  bool is_ending = false;
  std::vector<std::string> containers;
};
std::string title_of(const PodEntry& pod);  // "namespace/name"

struct PodName {
  std::string name_space;  // "": the one that kubectl uses by default
  std::string name;
};

struct FleetMember {
  std::string node;
  std::string name_space;
  std::string pod;       // "": there is none
  std::string obstacle;  // why it cannot be asked; "": it can
};

// One for each node that has a pod with that container, by the name of the node. Of several pods of a node the one that
// can answer counts.
std::vector<FleetMember> members_of(const std::vector<PodEntry>& pods, const std::string& container);

// Where pods with that container are, sorted. Anyone who may create pods can give one the labels of holdfast's, so that
// more than one namespace is ambiguous.
std::vector<std::string> namespaces_of(const std::vector<PodEntry>& pods, const std::string& container);

// Those of the named nodes; a node without a member gets one that says so.
std::vector<FleetMember> select_members(const std::vector<FleetMember>& members, const std::vector<std::string>& nodes);

// Kubernetes: names of pods, namespaces and nodes are made of a-z, 0-9, '-' and '.', so they are no options.
bool is_cluster_name(std::string_view text);

}  // namespace hf::report
