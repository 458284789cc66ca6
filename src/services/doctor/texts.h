// Texts: helpers shared by the checks: they select nodes, begin findings and write shell commands.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/finding.h"
#include "services/doctor/facts.h"

namespace hf::doctor {

using Nodes = std::vector<const container::NodeState*>;

inline constexpr device::Access kReadWrite = device::Access::read | device::Access::write;

Nodes nodes_with(const ContainerFacts& facts, container::AccessFailure failure);
report::Severity severity_of(const Nodes& nodes);  // a device works without its helper nodes
std::vector<std::string> paths_of(const Nodes& nodes);
std::string list_paths(const Nodes& nodes);
std::vector<std::string> diagnosis_lines(const Nodes& nodes);  // what is wrong with each of them

report::Finding finding_for_host(const char* code, report::Severity severity, std::string what);
report::Finding finding_for(const ContainerFacts& facts, const char* code, report::Severity severity, std::string what);
// A finding about nodes of the container that is as severe as severity_of() says.
report::Finding finding_about(const ContainerFacts& facts, const char* code, const Nodes& nodes, std::string what);

// "holdfast grant web 'c 195:0 rw'"
std::string grant_command(const ContainerFacts& facts, const Nodes& nodes);
// "holdfast heal web"; absent where the numbers of no node are known.
std::optional<std::string> heal_command(const ContainerFacts& facts, const Nodes& nodes);
// "systemctl set-property --runtime …"; absent where there is no unit, or it lacks none of the nodes.
std::optional<std::string> unit_command(const ContainerFacts& facts, const Nodes& nodes);

// "holdfast setup containerd": registers holdfast-runtime with the engine of a pod, and prints the RuntimeClass.
std::string setup_command(const ContainerFacts& facts);

// Does the bundle itself allow the device? If not, it was allowed without the runtime's knowledge.
bool is_in_spec(const ContainerFacts& facts, const container::OwedNode& node);
// cgroup v1: did systemd move it out of its devices cgroup?
bool is_moved_up(const container::Container& container);
// NVIDIA's driver; null where it is not loaded.
const device::DriverState* loaded_driver(const HostFacts& host);
// The driver writes only the GPU's slot to the kernel log, without the PCI function.
bool is_about(const nvidia::LogEvent& event, const device::Unit& unit);

}  // namespace hf::doctor
