// Seat: how a node looks from where the container sits, and what that means.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/container/entitlement.h"
#include "core/container/gate.h"
#include "core/device/device.h"
#include "core/device/inventory.h"

namespace hf::container {

// One node as a process of the container finds it. Errors are the kernel's numbers, 0 is success.
struct Seen {
  std::string path;
  int look = 0;                          // of looking for it; ENOENT: there is none
  std::optional<device::Device> device;  // absent: something else is there, or nothing
  std::uint32_t mode = 0;                // permission bits
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  bool is_on_nodev_mount = false;
  std::optional<int> access;  // of access(2) for reading and writing, in its cgroup, as its user; absent: not asked
  std::optional<int> open;    // of open(2); absent: not tried, as opening may wake a device
};

// What stands between the container and the device; docs/FINDINGS.md has a page for each.
enum class Trouble : std::uint8_t {
  none,
  cgroup_denies,
  driver_refuses,   // EPERM of the driver itself: an excluded GPU
  permission_bits,  // owner, group, mode
  security_module,  // SELinux, AppArmor: the bits would allow it
  nodev_mount,
  missing,          // not in the container, though the host has it
  missing_on_host,  // nowhere: the driver is not loaded, or made no node
  no_driver,        // nobody has that major
  wrong_driver,     // somebody else has it
  device_gone,      // ENODEV
  initialisation,   // EIO
  busy,             // EBUSY
  no_device_node,   // an ordinary file, a folder, a broken link in its place
  unknown,
};
std::string to_string(Trouble trouble);

// What the classifier needs besides what was seen.
struct Background {
  bool host_has_node = false;
  std::string driver;                          // which has the major that was seen; "" for none
  std::optional<device::Device> wanted;        // the numbers it should have
  Answer::Kind gates = Answer::Kind::unknown;  // what the device rules say
  bool bits_allow = true;                      // owner, group and mode would let the container's user
  std::string gates_detail;                    // which rules refuse, or why nobody can tell
};

struct Diagnosis {
  Trouble trouble = Trouble::none;
  std::string words;  // for people: "open gives EPERM: the device cgroup denies it"
};
Diagnosis classify(const Seen& seen, const Background& background);

// An owed node with everything known about it.
struct NodeState {
  OwedNode owed;
  Seen seen;
  Answer gates;  // for reading and writing
  Diagnosis diagnosis;

  // Is there something the container should have and has not?
  [[nodiscard]] bool is_troubled() const {
    return diagnosis.trouble != Trouble::none && (!owed.is_rule_only || diagnosis.trouble == Trouble::cgroup_denies);
  }
};

// Would a node with the numbers of today help? Not where the rules, the driver or the hardware stand in the way.
bool can_be_made_anew(const NodeState& node);

enum class State : std::uint8_t { ok, at_risk, partial, stale, lost, not_owed, unknown };
std::string to_string(State state);

// lost: of some class not one unit can be used. partial: something is missing, but a unit can be used. stale: what is
// missing has moved to other numbers.
State state_of(const std::vector<NodeState>& nodes, bool at_risk);

// Would a process with these ids and without special rights be let in by owner, group and mode?
struct Credentials {
  std::uint32_t uid = 0;
  std::vector<std::uint32_t> gids;
  bool overrides_bits = false;  // CAP_DAC_OVERRIDE
};
bool bits_allow(const Seen& seen, const Credentials& user);

}  // namespace hf::container
