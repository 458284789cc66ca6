// Gate: one place that decides about a request: a device program or a v1 list. Observed: all gates from the container's
// cgroup up to the root, in the order in which the kernel asks them. Each sees the verdict of those before it; most can
// only refuse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/strong_id.h"
#include "core/bpf/instruction.h"
#include "core/container/cgroup/cgroup_path.h"
#include "core/device/device.h"
#include "core/device/table.h"
#include "core/device/v1_list.h"

namespace hf::container {

using ProgramId = StrongId<struct ProgramIdTag, std::uint32_t>;

// How programs of one cgroup are attached. Kernel: programs attached as `several` all run, together with those above; a
// `single` one excludes other programs in its cgroup and in child cgroups; an `overridable` one gives way to a child's.
enum class Attachment : std::uint8_t { single, overridable, several };

struct AttachedProgram {
  std::optional<ProgramId> id;  // absent for a program in a file
  std::string name;
  std::optional<std::uint32_t> uid;       // of the process that loaded it
  std::optional<std::int64_t> loaded_at;  // seconds since 1970
  Attachment attachment = Attachment::several;
  bpf::Code code;  // empty where the kernel does not reveal it
};

// A device that the shield keeps open for one cgroup, and how often this was needed.
struct ShieldEntry {
  device::Device device;
  device::Access access = device::Access::none;
  std::uint64_t count = 0;    // requests that it let through although the rules refused them
  std::uint64_t last_at = 0;  // time of the last such request in nanoseconds of CLOCK_MONOTONIC; 0: never

  friend bool operator==(const ShieldEntry&, const ShieldEntry&) = default;
};

device::Rule rule_for(const ShieldEntry& entry);

struct Shield {
  std::vector<ShieldEntry> entries;  // of the observed cgroup
};

struct Gate {
  Hierarchy hierarchy = Hierarchy::v2;
  std::string where;  // for messages: the cgroup's directory, "file:…", or "" for a program by its id
  // The cgroup's path below the mount of its hierarchy; absent for a program without a cgroup, or with one above that.
  std::optional<CgroupPath> cgroup;
  bool is_own = true;  // it belongs to the observed cgroup; false for those above it and for the root
  std::string owner;   // the software that attached it, "" where it is unknown
  std::optional<AttachedProgram> program;  // v2
  std::optional<device::V1List> list;      // v1
  bpf::Readable<device::Table> meaning;    // the requests it lets through of those that reach it allowed
  std::string doubt;                       // why it may let through less than `meaning` says; "" where that is exact
  // What it lets through although a gate before it refused it (bpf_set_retval). Known only where `meaning` is.
  device::Table overrides;
  bool may_override = false;  // `overrides` is not empty, or the program cannot be read and might
  // Present where the gate is holdfast's own shield. A shield of another version cannot be read and shows no entries.
  std::optional<Shield> shield;
};

// Kernel: cgroup v1 asks only the list of the process's own cgroup; the lists above bound what may be written to it.
struct V1Limit {
  std::string where;
  device::V1List list;
};

struct Observed {
  std::vector<Gate> gates;
  std::vector<V1Limit> v1_above;        // nearest first
  std::optional<std::string> v2_where;  // the v2 cgroup's directory, also where nothing is attached; not the root's
};

// The rules that are in force after the last gate.
struct Effective {
  device::Table table;  // allows nothing where a gate cannot be read, as nothing is certain then
  bool exact = true;
  std::string why;  // where not exact
};
Effective effective(const Observed& observed);

struct Answer {
  enum class Kind : std::uint8_t { allow, deny, unknown };

  Kind kind = Kind::allow;
  std::string detail;  // the gate that refuses, or why the answer is unknown
};
Answer judge(const Observed& observed, const device::Request& request);

// The gates whose verdict on a request is unknown: if a probe is refused, one of these refused it.
std::vector<std::string> names_of_unclear(const Observed& observed, const device::Request& request);

// The depth of its cgroup in the hierarchy: 0 is the root, or a cgroup above what is visible.
unsigned depth_of(const Gate& gate);

// The name of a gate in messages: "v2:/sys/fs/cgroup/x program:57 (systemd)".
std::string name_of(const Gate& gate);

}  // namespace hf::container
