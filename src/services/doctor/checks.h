// Checks: each check derives findings from the collected facts. No check reads or changes the host itself.
#pragma once

#include <string>
#include <vector>

#include "core/report/finding.h"
#include "services/doctor/facts.h"

namespace hf::doctor {

using Findings = std::vector<report::Finding>;

void check_host(const HostFacts& host, const host::Census& census, Findings& findings);
void check_cdi(const HostFacts& host, Findings& findings);
void check_kubelet(const HostFacts& host, Findings& findings);

void check_denied(const HostFacts& host, const ContainerFacts& facts, Findings& findings);
void check_nodes(const HostFacts& host, const ContainerFacts& facts, Findings& findings);
void check_filters(const HostFacts& host, const ContainerFacts& facts, Findings& findings);
void check_libraries(const HostFacts& host, const ContainerFacts& facts, Findings& findings);
void check_evidence(const HostFacts& host, const ContainerFacts& facts, Findings& findings);
void check_risk(const HostFacts& host, const ContainerFacts& facts, Findings& findings);

}  // namespace hf::doctor
