// Texts: helpers shared by the checks of containers: they select nodes and write shell commands.
#pragma once

#include <string>
#include <vector>

#include "core/report/finding.h"
#include "services/doctor/facts.h"

namespace hf::doctor {

using Nodes = std::vector<const container::NodeState*>;

Nodes nodes_with(const ContainerFacts& facts, container::AccessFailure failure);
report::Severity severity_of(const Nodes& nodes);  // a device works without its helper nodes

report::Finding finding_for(const ContainerFacts& facts, const char* code, report::Severity severity,
                            std::string verdict);
std::string list_paths(const Nodes& nodes);
// "holdfast grant web 'c 195:0 rw'"
std::string grant_command(const ContainerFacts& facts, const Nodes& nodes);
// "systemctl set-property --runtime …", "" where there is no unit
std::string unit_command(const ContainerFacts& facts, const Nodes& nodes);
// Does the bundle itself allow the device? If not, it was allowed without the runtime's knowledge.
bool is_in_spec(const ContainerFacts& facts, const container::OwedNode& node);
// cgroup v1: did systemd move it out of its devices cgroup?
bool is_moved_up(const ContainerFacts& facts);
// The container's name, quoted for the shell.
std::string shell_name_of(const container::Container& container);
std::string quoted_for_shell(const std::string& argument);

}  // namespace hf::doctor
