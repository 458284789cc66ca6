// DoctorCases: facts of a healthy host with a healthy container, and what is changed in them to test each finding.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "services/doctor/checks.h"

namespace hf::test {

// A host with two GPUs. Nothing is wrong with it.
struct HostScene {
  HostScene();

  doctor::HostFacts host;
  host::Census census;

  device::Node& node(const std::string& path);
};

// The container "web" of that host is owed /dev/nvidia0 and /dev/nvidiactl, and can open both.
struct ContainerScene {
  ContainerScene();
  ContainerScene(const ContainerScene&) = delete;
  ContainerScene& operator=(const ContainerScene&) = delete;

  doctor::HostFacts host = HostScene().host;
  host::DiscoveredContainer discovered;
  doctor::ContainerFacts facts;

  container::Container& container() { return discovered.container; }
  container::NodeState& node(const std::string& path);
  void change_owed(const std::string& path, const std::function<void(container::OwedNode&)>& change);
  container::Gate& gate() { return facts.observed.gates.front(); }
  void fail(const std::string& path, container::AccessFailure failure);
  void put_in_pod();
  void put_in_unit(const device::Table& allowed);  // systemd's, which allows this
};

device::Table table(std::initializer_list<const char*> rules);
container::Gate program_gate(std::uint32_t id, const std::string& cgroup, const device::Table& meaning);

// The nodes that the findings with this code are about; absent: there is no such finding.
using Found = std::vector<std::string>;
inline constexpr std::nullopt_t kNotFound = std::nullopt;

struct ContainerCase {
  const char* code;
  const char* name;
  std::optional<Found> found;
  void (*arrange)(ContainerScene& scene);
};
std::vector<ContainerCase> denied_cases();  // denied_checks_test.cpp, and so on
std::vector<ContainerCase> node_cases();
std::vector<ContainerCase> filter_cases();
std::vector<ContainerCase> evidence_cases();
std::vector<ContainerCase> risk_cases();

struct HostCase {
  const char* code;
  const char* name;
  std::optional<Found> found;
  void (*arrange)(HostScene& scene);
};
std::vector<HostCase> driver_cases();
std::vector<HostCase> host_file_cases();

template <class Case>
std::vector<Case> concatenate(std::initializer_list<std::vector<Case>> lists) {
  std::vector<Case> all;
  for (const std::vector<Case>& list : lists) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

}  // namespace hf::test
