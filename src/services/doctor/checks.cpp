#include "services/doctor/checks.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "core/report/verdict.h"

namespace hf::doctor {
namespace {

// `holdfast ps` lists the codes in this order.
constexpr std::array<ContainerCheck*, 33> kContainerChecks = {
    find_lost_access,
    find_access_never_given,
    find_denial_above,
    find_nothing_injected,
    find_missing_nodes,
    find_stale_nodes,
    find_unloaded_driver,
    find_refusing_permission_bits,
    find_refusing_security_module,
    find_nodev_mount,
    find_refusing_driver,
    find_gone_device,
    find_failed_initialisation,
    find_busy_device,
    find_other_file_in_place,
    find_unclear_access,
    find_devices_not_in_unit,
    find_devices_runc_left_out,
    find_loss_at_update,
    find_loss_by_kubelet,
    find_ineffective_denials,
    find_too_many_programs,
    find_moved_container,
    find_unattached_program,
    find_wider_unit,
    find_access_without_evidence,
    find_other_library_version,
    find_deleted_driver_files,
    find_untrusted_records,
    find_unconfirmed_requests,
    find_unserved_requests,
    find_nodes_not_owed,
    find_gone_allocations,
};

constexpr std::array<HostCheck*, 19> kHostChecks = {
    find_unloaded_host_driver, find_missing_host_nodes,     find_stale_host_nodes,
    find_missing_links,        find_other_driver_libraries, find_sick_gpus,
    find_hardened_jit,         find_stale_cdi_specs,        find_shadowed_cdi_specs,
    find_unusable_cdi_specs,   find_plugin_without_uvm,     find_hook_without_rules,
    find_half_loaded_driver,   find_missing_fabric,         find_failing_library,
    find_stale_lxc_rules,      find_unregistered_devices,   find_unreadable_checkpoint,
    find_engine_without_nri,
};

}  // namespace

ContainerDiagnosis check_container(const HostFacts& host, const ContainerFacts& facts) {
  ContainerDiagnosis diagnosis;
  for (ContainerCheck* const find : kContainerChecks) {
    std::ranges::move(find(host, facts), std::back_inserter(diagnosis.findings));
  }
  bool at_risk = false;
  std::vector<const report::Finding*> findings;
  for (const report::Finding& finding : diagnosis.findings) {
    at_risk = at_risk || report::is_about_risk(finding);
    findings.push_back(&finding);
  }
  diagnosis.shield = container::cover_of(facts.entitlement, facts.observed);
  diagnosis.state = report::state_with(state_of(facts.nodes, at_risk), findings);
  return diagnosis;
}

Findings check_host(const HostFacts& host, const host::Census& census) {
  Findings findings;
  for (HostCheck* const find : kHostChecks) {
    std::ranges::move(find(host, census), std::back_inserter(findings));
  }
  return findings;
}

}  // namespace hf::doctor
