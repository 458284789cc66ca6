// Checks: each looks at facts and says what is wrong. None of them touches the world.
#pragma once

#include <string>
#include <vector>

#include "core/report/finding.h"
#include "services/doctor/facts.h"

namespace hf::doctor {

using Findings = std::vector<report::Finding>;

void check_host(const HostFacts& host, const node::Census& census, Findings& findings);
void check_cdi(const HostFacts& host, Findings& findings);
void check_kubelet(const HostFacts& host, Findings& findings);

void check_access(const HostFacts& host, const ContainerFacts& facts, Findings& findings);
void check_filters(const HostFacts& host, const ContainerFacts& facts, Findings& findings);
void check_libraries(const HostFacts& host, const ContainerFacts& facts, Findings& findings);
void check_evidence(const HostFacts& host, const ContainerFacts& facts, Findings& findings);
void check_risk(const HostFacts& host, const ContainerFacts& facts, Findings& findings);

// What the checks of containers share.
report::Finding finding_for(const ContainerFacts& facts, const char* code, report::Severity severity,
                            std::string verdict);
std::string list_paths(const std::vector<const container::NodeState*>& nodes);
// "holdfast grant web 'c 195:0 rw'"
std::string grant_command(const ContainerFacts& facts, const std::vector<const container::NodeState*>& nodes);
// "systemctl set-property --runtime …", "" where there is no unit
std::string unit_command(const ContainerFacts& facts, const std::vector<const container::NodeState*>& nodes);
// Does the bundle itself allow the device? If not, it was given behind the runtime's back.
bool is_in_spec(const ContainerFacts& facts, const container::OwedNode& node);
// cgroup v1: did systemd move it out of its devices cgroup?
bool is_moved_up(const ContainerFacts& facts);
std::string word_for(const container::Container& container);  // in the shell
std::string quoted_for_shell(const std::string& word);

}  // namespace hf::doctor
