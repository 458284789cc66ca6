// NodeState: an owed device node as a process of the container finds it, and the diagnosis of what prevents its use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/shared.h"
#include "core/container/entitlement/entitlement.h"
#include "core/container/gate/gate.h"
#include "core/device/device.h"
#include "core/device/inventory.h"

namespace hf::container {

// One device node as a process of the container finds it. Errors are errno values, 0 is success.
struct NodeView {
  std::string path;
  int lookup_error = 0;                  // error of the lookup; ENOENT: there is none
  std::optional<device::Device> device;  // absent: the path is no device node, or does not exist
  std::uint32_t mode = 0;                // permission bits
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  bool is_on_nodev_mount = false;
  std::optional<int> access;  // error of access(2) for read and write, in its cgroup, as its user; absent: not tried
  std::optional<int> open;    // error of open(2); absent: not tried, as opening may wake a device
  bool is_enclosed = false;   // not every user may search the directories above it, or a symlink leads to it
};

// Why the container cannot use the device; docs/FINDINGS.md has a page for each.
enum class AccessFailure : std::uint8_t {
  none,
  cgroup_denies,
  driver_refuses,   // EPERM of the driver itself: an excluded GPU
  permission_bits,  // owner, group, mode
  security_module,  // SELinux, AppArmor: the bits would allow it
  nodev_mount,
  missing,          // not in the container, though the host has it
  missing_on_host,  // nor on the host: the driver is not loaded, or created no device node
  no_driver,        // no driver has that major
  wrong_driver,     // another driver has that major
  device_gone,      // ENODEV
  initialisation,   // EIO
  busy,             // EBUSY
  no_device_node,   // a regular file, a directory or a broken symlink in its place
  unknown,
};
std::string to_string(AccessFailure failure);

// What is known of a node besides the view from inside.
struct NodeFacts {
  bool host_has_node = false;
  std::string driver;                          // of the major that was seen; "" for none
  std::optional<device::Device> wanted;        // the device numbers it should have
  Answer::Kind gates = Answer::Kind::unknown;  // verdict of the device rules
  bool bits_allow = true;                      // owner, group and mode allow it to the container's user
  std::string gates_detail;                    // which gate refuses, or why the verdict is unknown
};

struct Diagnosis {
  AccessFailure failure = AccessFailure::none;
  std::string text;  // for people: "open gives EPERM: the device cgroup denies it"
};
Diagnosis classify(const NodeView& seen, const NodeFacts& facts);

// An owed device node with everything known about it.
struct NodeState {
  Shared<OwedNode> owed;  // mostly a part of the container's entitlement
  NodeView seen;
  Answer gates;  // for read and write
  Diagnosis diagnosis;

  // Whether the container lacks access that it is owed.
  [[nodiscard]] bool is_inaccessible() const {
    return diagnosis.failure != AccessFailure::none &&
           (!owed->is_rule_only || diagnosis.failure == AccessFailure::cgroup_denies);
  }
};

// Whether a new device node with the current numbers would help: it does not where the rules or the driver refuse.
bool can_be_recreated(const NodeState& node);

enum class State : std::uint8_t { ok, at_risk, partial, stale, lost, not_owed, unknown };
std::string to_string(State state);

// lost: no unit of some class can be used. partial: something is missing, but a unit of each class can be used. stale:
// a device has moved to other device numbers.
State state_of(const std::vector<NodeState>& nodes, bool at_risk);

// The process whose access bits_allow() checks against owner, group and mode.
struct Credentials {
  std::uint32_t uid = 0;
  std::vector<std::uint32_t> gids;
  bool overrides_bits = false;  // CAP_DAC_OVERRIDE
};
bool bits_allow(const NodeView& seen, const Credentials& user);

// What access(2) for reading and writing gives a process of the container, where that follows from rules and permission
// bits, also those of directories. Absent where only a try tells.
std::optional<int> access_by_rules(const NodeView& seen, const OwedNode& owed, const Answer& gates,
                                   const Credentials& user);

}  // namespace hf::container
