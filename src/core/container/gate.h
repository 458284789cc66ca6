// Gate: one place that decides about a request. Observed: all of them, from the container's cgroup up to the root, in
// the order in which the kernel asks them. Each sees the verdict of those before it; most can only refuse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/strong_id.h"
#include "core/bpf/instruction.h"
#include "core/container/cgroup_path.h"
#include "core/device/device.h"
#include "core/device/table.h"
#include "core/device/v1_list.h"

namespace hf::container {

using ProgramId = StrongId<struct ProgramIdTag, std::uint32_t>;

// How programs of one cgroup are attached. Kernel: `several` run all, with those above; a `single` one is alone,
// refuses other writers and programs in child cgroups; an `overridable` one gives way to a child's.
enum class Attachment : std::uint8_t { single, overridable, several };

struct AttachedProgram {
  std::optional<ProgramId> id;  // absent for a program in a file
  std::string name;
  std::optional<std::uint32_t> uid;       // who loaded it
  std::optional<std::int64_t> loaded_at;  // seconds since 1970
  Attachment attachment = Attachment::several;
  bpf::Code code;  // empty where the kernel does not give it out
};

// What the shield keeps open for one cgroup, and how often it had to.
struct ShieldEntry {
  device::Device device;
  device::Access access = device::Access::none;
  std::uint64_t count = 0;    // requests that it let through although the rules refused them
  std::uint64_t last_at = 0;  // nanoseconds of CLOCK_MONOTONIC, of the last of those; 0: never

  friend bool operator==(const ShieldEntry&, const ShieldEntry&) = default;
};

device::Rule rule_for(const ShieldEntry& entry);

struct Shield {
  std::vector<ShieldEntry> entries;  // of the cgroup asked about
};

struct Gate {
  Hierarchy hierarchy = Hierarchy::v2;
  std::string where;   // the cgroup's directory; "file:…" or "" where the gate is a program by itself
  bool is_own = true;  // of the cgroup asked about; otherwise of one above it, or of the root, which is nobody's own
  unsigned depth = 0;  // of its cgroup in a v2 hierarchy: 0 is the root, or above what can be seen
  std::string owner;   // who put it there, "" where nothing tells
  std::optional<AttachedProgram> program;  // v2
  std::optional<device::V1List> list;      // v1
  bpf::Readable<device::Table> meaning;    // what it lets through of what the gates before it let through
  std::string doubt;                       // why the meaning may be narrower than it says; "" where it is exact
  // What it lets through although a gate before it refused (bpf_set_retval). Known only where `meaning` is.
  device::Table overrides;
  bool may_override = false;  // `overrides` is not empty, or the program cannot be read and might
  // The gate is holdfast's own shield. One of another version cannot be read and shows no entries.
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

// The rules that hold in the end, after the last gate.
struct Effective {
  device::Table table;  // nothing where a gate cannot be read: nothing is certain then
  bool exact = true;
  std::string why;  // where not exact
};
Effective effective(const Observed& observed);

struct Answer {
  enum class Kind : std::uint8_t { allow, deny, unknown };

  Kind kind = Kind::allow;
  std::string detail;  // the gate that refuses, or why nobody can tell
};
Answer judge(const Observed& observed, const device::Request& request);

// The gates that could not be judged on a request: if a probe says that it is refused, it is by one of these.
std::vector<std::string> names_of_unclear(const Observed& observed, const device::Request& request);

// One word for a gate: "v2:/sys/fs/cgroup/x program:57 (systemd)".
std::string name_of(const Gate& gate);

}  // namespace hf::container
