#include "core/container/entitlement/node_state.h"

#include <algorithm>
#include <cerrno>
#include <map>

namespace hf::container {
namespace {

using device::Part;

bool is_missing(const NodeView& seen) { return seen.lookup_error == ENOENT || seen.lookup_error == ENOTDIR; }

Diagnosis missing(const NodeView& seen, const NodeFacts& facts) {
  if (facts.host_has_node) {
    return {AccessFailure::missing, seen.path + " is not in the container, though the host has it"};
  }
  return {AccessFailure::missing_on_host,
          seen.path + " is neither in the container nor on the host: its driver is not loaded, or made no node"};
}

// The access was refused before any driver was asked.
Diagnosis refused(const NodeView& seen, const NodeFacts& facts) {
  if (*seen.access == EPERM) {
    return {AccessFailure::cgroup_denies, "access gives EPERM: the device cgroup denies it"};
  }
  if (*seen.access != EACCES) {
    return {AccessFailure::unknown, "access gives error " + std::to_string(*seen.access)};
  }
  if (facts.bits_allow && seen.is_enclosed) {
    return {AccessFailure::permission_bits,
            "access gives EACCES: a directory above it does not let the container's user in"};
  }
  if (facts.bits_allow) {
    return {AccessFailure::security_module,
            "access gives EACCES although owner and mode allow it: a security module (SELinux, AppArmor) denies it"};
  }
  return {AccessFailure::permission_bits,
          "access gives EACCES: owner, group and mode do not let the container's user in"};
}

Diagnosis by_numbers(const NodeView& seen, const NodeFacts& facts) {
  if (facts.wanted && *seen.device != *facts.wanted) {
    const std::string has = facts.driver.empty() ? "no driver has that major" : "that is " + facts.driver;
    return {facts.driver.empty() ? AccessFailure::no_driver : AccessFailure::wrong_driver,
            "the node is " + to_string(*seen.device) + " (" + has + "), the device is " + to_string(*facts.wanted)};
  }
  if (facts.driver.empty()) {
    return {AccessFailure::no_driver,
            "no driver has the major of " + to_string(*seen.device) + ": open would give ENXIO"};
  }
  return {};
}

Diagnosis by_open(const NodeView& seen, const NodeFacts& facts) {
  switch (*seen.open) {
    case 0: return {};
    case EPERM:
      return {AccessFailure::driver_refuses, "open gives EPERM although the cgroup allows it: the driver refuses"};
    case EACCES:
      return {AccessFailure::nodev_mount, "open gives EACCES although access is allowed: a mount with nodev"};
    case ENXIO: return {AccessFailure::no_driver, "open gives ENXIO: no driver at " + to_string(*seen.device)};
    case ENODEV: return {AccessFailure::device_gone, "open gives ENODEV: the driver has lost the device"};
    case EIO: return {AccessFailure::initialisation, "open gives EIO: the driver cannot initialise the device"};
    case EBUSY: return {AccessFailure::busy, "open gives EBUSY: the device is being reset or drained"};
    default: break;
  }
  (void)facts;
  return {AccessFailure::unknown, "open gives error " + std::to_string(*seen.open)};
}

}  // namespace

std::string to_string(AccessFailure failure) {
  switch (failure) {
    case AccessFailure::none: return "ok";
    case AccessFailure::cgroup_denies: return "cgroup-denies";
    case AccessFailure::driver_refuses: return "driver-refuses";
    case AccessFailure::permission_bits: return "permission-bits";
    case AccessFailure::security_module: return "security-module";
    case AccessFailure::nodev_mount: return "nodev-mount";
    case AccessFailure::missing: return "missing";
    case AccessFailure::missing_on_host: return "missing-on-host";
    case AccessFailure::no_driver: return "no-driver";
    case AccessFailure::wrong_driver: return "wrong-driver";
    case AccessFailure::device_gone: return "device-gone";
    case AccessFailure::initialisation: return "initialisation";
    case AccessFailure::busy: return "busy";
    case AccessFailure::no_device_node: return "no-device-node";
    case AccessFailure::unknown: return "unknown";
  }
  return "";
}

Diagnosis classify(const NodeView& seen, const NodeFacts& facts) {
  if (is_missing(seen)) {
    return missing(seen, facts);
  }
  if (seen.lookup_error != 0) {
    return {AccessFailure::unknown, "looking for " + seen.path + " gives error " + std::to_string(seen.lookup_error)};
  }
  if (!seen.device) {
    return {AccessFailure::no_device_node, seen.path + " is no device node"};
  }
  const bool has_other_numbers = facts.wanted && *seen.device != *facts.wanted;
  if (seen.access && *seen.access == EPERM && has_other_numbers && facts.gates == Answer::Kind::allow) {
    return by_numbers(seen, facts);  // the rules allow the device, but not the stale numbers of the node
  }
  if (seen.access && *seen.access != 0) {
    return refused(seen, facts);
  }
  if (const Diagnosis numbers = by_numbers(seen, facts); !seen.access && numbers.failure != AccessFailure::none) {
    return numbers;  // the verdict of the rules is about the current numbers, and the node has others
  }
  if (!seen.access && facts.gates == Answer::Kind::deny) {
    return {AccessFailure::cgroup_denies, "the device rules deny it"};
  }
  if (!seen.access && facts.gates == Answer::Kind::unknown) {
    const std::string why = facts.gates_detail.empty() ? "" : " (" + facts.gates_detail + ")";
    return {AccessFailure::unknown, "the device rules cannot be read" + why + ", and no probe answered"};
  }
  if (seen.is_on_nodev_mount) {
    return {AccessFailure::nodev_mount, "the node lies on a mount with nodev: open would give EACCES"};
  }
  if (seen.open && *seen.open != 0 && *seen.open != ENXIO) {
    return by_open(seen, facts);
  }
  const Diagnosis numbers = by_numbers(seen, facts);
  return numbers.failure != AccessFailure::none || !seen.open ? numbers : by_open(seen, facts);
}

std::string to_string(State state) {
  switch (state) {
    case State::ok: return "ok";
    case State::at_risk: return "at risk";
    case State::partial: return "partial";
    case State::stale: return "stale";
    case State::lost: return "lost";
    case State::not_owed: return "not owed";
    case State::unknown: return "unknown";
  }
  return "";
}

bool can_be_recreated(const NodeState& node) {
  if (!node.owed->device || node.owed->is_rule_only) {
    return false;
  }
  switch (node.diagnosis.failure) {
    case AccessFailure::missing:
    case AccessFailure::missing_on_host:
    case AccessFailure::wrong_driver:
    case AccessFailure::no_device_node: return true;
    case AccessFailure::permission_bits: return !node.seen.is_enclosed;
    case AccessFailure::no_driver: return node.seen.device != node.owed->device;
    default: return false;
  }
}

State state_of(const std::vector<NodeState>& nodes, bool at_risk) {
  if (nodes.empty()) {
    return State::not_owed;
  }
  struct Tally {
    int units = 0;
    int usable = 0;
    bool control_is_fine = true;
  };
  std::map<std::string, Tally> classes;
  bool inaccessible = false;
  bool moved = false;
  bool unclear = false;
  for (const NodeState& node : nodes) {
    Tally& tally = classes[node.owed->device_class];
    const bool bad = node.is_inaccessible();
    const bool is_unit = node.owed->part == Part::unit;
    tally.units += is_unit ? 1 : 0;
    tally.usable += is_unit && !bad ? 1 : 0;
    tally.control_is_fine = tally.control_is_fine && (!bad || node.owed->part != Part::control);
    inaccessible = inaccessible || bad;
    unclear = unclear || node.diagnosis.failure == AccessFailure::unknown;
    moved = moved || (bad && (node.diagnosis.failure == AccessFailure::wrong_driver ||
                              (node.diagnosis.failure == AccessFailure::no_driver && node.owed->device &&
                               node.seen.device != node.owed->device)));
  }
  const bool lost = std::ranges::any_of(classes, [](const auto& entry) {
    return entry.second.units > 0 && (entry.second.usable == 0 || !entry.second.control_is_fine);
  });
  if (unclear) {
    return State::unknown;
  }
  if (inaccessible) {
    return moved ? State::stale : lost ? State::lost : State::partial;
  }
  return at_risk ? State::at_risk : State::ok;
}

bool bits_allow(const NodeView& seen, const Credentials& user) {
  if (user.overrides_bits) {
    return true;
  }
  const bool is_owner = user.uid == seen.uid;
  const bool is_member = std::ranges::find(user.gids, seen.gid) != user.gids.end();
  const std::uint32_t shift = is_owner ? 6 : is_member ? 3 : 0;
  constexpr std::uint32_t kReadAndWrite = 06;
  return (seen.mode >> shift & kReadAndWrite) == kReadAndWrite;
}

std::optional<int> access_by_rules(const NodeView& seen, const OwedNode& owed, const Answer& gates,
                                   const Credentials& user) {
  constexpr device::Access kReadWrite = device::Access::read | device::Access::write;
  // CAP_DAC_OVERRIDE counts for files whose owner the user namespace knows: certain only of the host's own root.
  Credentials certain = user;
  certain.overrides_bits = user.overrides_bits && user.uid == 0;
  const bool is_asked = contains(owed.access, kReadWrite) && seen.device && seen.device == owed.device;
  const bool is_reached = certain.overrides_bits || !seen.is_enclosed;
  if (!is_asked || !is_reached || !bits_allow(seen, certain) || gates.kind == Answer::Kind::unknown) {
    return std::nullopt;
  }
  // Kernel: permission bits come first, then the device cgroup (fs/namei.c, inode_permission).
  return gates.kind == Answer::Kind::allow ? 0 : EPERM;
}

}  // namespace hf::container
