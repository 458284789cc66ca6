#include "services/doctor/checks.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace hf::doctor {
namespace {

// What a finding says about the container's state that its nodes do not show.
enum class Meaning : std::uint8_t {
  none,
  at_risk,         // it will lose a device
  allocated_gone,  // it is owed a device that the host no longer has
};

struct ContainerEntry {
  ContainerCheck* find;
  Meaning meaning = Meaning::none;
};

// `holdfast ps` lists the codes in this order.
constexpr std::array kContainerChecks = {
    ContainerEntry{find_lost_access},
    ContainerEntry{find_access_never_given},
    ContainerEntry{find_denial_above},
    ContainerEntry{find_nothing_injected},
    ContainerEntry{find_missing_nodes},
    ContainerEntry{find_stale_nodes},
    ContainerEntry{find_unloaded_driver},
    ContainerEntry{find_refusing_permission_bits},
    ContainerEntry{find_refusing_security_module},
    ContainerEntry{find_nodev_mount},
    ContainerEntry{find_refusing_driver},
    ContainerEntry{find_gone_device},
    ContainerEntry{find_failed_initialisation},
    ContainerEntry{find_busy_device},
    ContainerEntry{find_other_file_in_place},
    ContainerEntry{find_unclear_access},
    ContainerEntry{find_devices_not_in_unit, Meaning::at_risk},
    ContainerEntry{find_devices_runc_left_out, Meaning::at_risk},
    ContainerEntry{find_loss_at_update, Meaning::at_risk},
    ContainerEntry{find_loss_by_kubelet, Meaning::at_risk},
    ContainerEntry{find_ineffective_denials},
    ContainerEntry{find_too_many_programs},
    ContainerEntry{find_moved_container},
    ContainerEntry{find_unattached_program},
    ContainerEntry{find_wider_unit},
    ContainerEntry{find_access_without_evidence},
    ContainerEntry{find_other_library_version},
    ContainerEntry{find_deleted_driver_files},
    ContainerEntry{find_untrusted_records},
    ContainerEntry{find_unconfirmed_requests},
    ContainerEntry{find_unserved_requests},
    ContainerEntry{find_nodes_not_owed},
    ContainerEntry{find_gone_allocations, Meaning::allocated_gone},
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
  bool at_risk = false;
  bool allocated_gone = false;
  for (const ContainerEntry& check : kContainerChecks) {
    Findings found = check.find(host, facts);
    at_risk = at_risk || (check.meaning == Meaning::at_risk && !found.empty());
    allocated_gone = allocated_gone || (check.meaning == Meaning::allocated_gone && !found.empty());
    std::ranges::move(found, std::back_inserter(diagnosis.findings));
  }
  diagnosis.shield = container::cover_of(facts.entitlement, facts.observed);
  diagnosis.state = state_of(facts.nodes, at_risk && !diagnosis.shield.is_on);
  if (diagnosis.state == container::State::not_owed && allocated_gone) {
    diagnosis.state = container::State::lost;
  }
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
