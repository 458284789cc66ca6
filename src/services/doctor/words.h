// Words: what the checks of containers share: choosing nodes, and writing commands for the shell.
#pragma once

#include <string>
#include <vector>

#include "core/report/finding.h"
#include "services/doctor/facts.h"

namespace hf::doctor {

using Nodes = std::vector<const container::NodeState*>;

Nodes nodes_with(const ContainerFacts& facts, container::Trouble trouble);
report::Severity severity_of(const Nodes& nodes);  // a device works without its helpers

report::Finding finding_for(const ContainerFacts& facts, const char* code, report::Severity severity,
                            std::string verdict);
std::string list_paths(const Nodes& nodes);
// "holdfast grant web 'c 195:0 rw'"
std::string grant_command(const ContainerFacts& facts, const Nodes& nodes);
// "systemctl set-property --runtime …", "" where there is no unit
std::string unit_command(const ContainerFacts& facts, const Nodes& nodes);
// Does the bundle itself allow the device? If not, it was given behind the runtime's back.
bool is_in_spec(const ContainerFacts& facts, const container::OwedNode& node);
// cgroup v1: did systemd move it out of its devices cgroup?
bool is_moved_up(const ContainerFacts& facts);
std::string shell_word_for(const container::Container& container);  // in the shell
std::string quoted_for_shell(const std::string& word);

}  // namespace hf::doctor
