// Checks: one function for each code of docs/FINDINGS.md. Each derives its findings from the collected facts; none
// reads or changes the host.
#pragma once

#include <cstdint>
#include <vector>

#include "core/container/entitlement/node_state.h"
#include "core/container/guard/shield.h"
#include "core/report/finding.h"
#include "services/doctor/facts.h"

namespace hf::doctor {

using Findings = std::vector<report::Finding>;
using ContainerCheck = Findings(const HostFacts& host, const ContainerFacts& facts);
using HostCheck = Findings(const HostFacts& host, const host::Census& census);

// denied_checks.cpp
ContainerCheck find_lost_access;         // HF-101
ContainerCheck find_access_never_given;  // HF-102
ContainerCheck find_denial_above;        // HF-103

// node_checks.cpp
ContainerCheck find_missing_nodes;     // HF-104
ContainerCheck find_nothing_injected;  // HF-105
ContainerCheck find_stale_nodes;       // HF-106
ContainerCheck find_unloaded_driver;   // HF-107

// refusal_checks.cpp
ContainerCheck find_refusing_permission_bits;  // HF-108
ContainerCheck find_refusing_security_module;  // HF-109
ContainerCheck find_nodev_mount;               // HF-110
ContainerCheck find_refusing_driver;           // HF-111
ContainerCheck find_gone_device;               // HF-112
ContainerCheck find_failed_initialisation;     // HF-113
ContainerCheck find_busy_device;               // HF-114
ContainerCheck find_other_file_in_place;       // HF-115
ContainerCheck find_unclear_access;            // HF-116

// filter_checks.cpp
ContainerCheck find_moved_container;          // HF-117
ContainerCheck find_too_many_programs;        // HF-118
ContainerCheck find_ineffective_denials;      // HF-119
ContainerCheck find_wider_unit;               // HF-120
ContainerCheck find_unattached_program;       // HF-121
ContainerCheck find_access_without_evidence;  // HF-124

// library_checks.cpp
ContainerCheck find_other_library_version;  // HF-122
ContainerCheck find_deleted_driver_files;   // HF-123

// evidence_checks.cpp
ContainerCheck find_unconfirmed_requests;  // HF-125
ContainerCheck find_unserved_requests;     // HF-126
ContainerCheck find_nodes_not_owed;        // HF-127
ContainerCheck find_gone_allocations;      // HF-128
ContainerCheck find_untrusted_records;     // HF-129

// risk_checks.cpp
ContainerCheck find_devices_not_in_unit;    // HF-201
ContainerCheck find_devices_runc_left_out;  // HF-202
ContainerCheck find_loss_at_update;         // HF-203
ContainerCheck find_loss_by_kubelet;        // HF-204

// driver_checks.cpp
HostCheck find_unloaded_host_driver;    // HF-301
HostCheck find_other_driver_libraries;  // HF-305
HostCheck find_sick_gpus;               // HF-306
HostCheck find_hardened_jit;            // HF-307
HostCheck find_hook_without_rules;      // HF-312
HostCheck find_half_loaded_driver;      // HF-313
HostCheck find_missing_fabric;          // HF-314
HostCheck find_failing_library;         // HF-315

// host_node_checks.cpp
HostCheck find_missing_host_nodes;  // HF-302
HostCheck find_stale_host_nodes;    // HF-303
HostCheck find_missing_links;       // HF-304
HostCheck find_stale_lxc_rules;     // HF-316

// cdi_checks.cpp
HostCheck find_stale_cdi_specs;     // HF-308
HostCheck find_shadowed_cdi_specs;  // HF-309
HostCheck find_unusable_cdi_specs;  // HF-310

// kubelet_checks.cpp
HostCheck find_plugin_without_uvm;     // HF-311
HostCheck find_unregistered_devices;   // HF-317
HostCheck find_unreadable_checkpoint;  // HF-318
HostCheck find_engine_without_nri;     // HF-319

// Why updates of this container's resources rewrite its rules, and what makes kubelet send them; empty where they do
// not.
std::vector<std::string> causes_of_updates(const HostFacts& host, const ContainerFacts& facts);

struct ContainerDiagnosis {
  Findings findings;
  container::State state = container::State::not_owed;
  container::ShieldCover shield;
};
ContainerDiagnosis check_container(const HostFacts& host, const ContainerFacts& facts);
Findings check_host(const HostFacts& host, const host::Census& census);

}  // namespace hf::doctor
