// Blame: records of what happened to a container's rules: before and after, the writer, how long access was lost, and
// what was done about it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/container/container.h"
#include "core/container/guard/event.h"

namespace hf::report {

// none:     nothing that is owed was lost.
// observed: something was lost, and the policy says to report only.
// healed:   it was restored. failed: it could not be. waits: another writer undoes each repair; the next is delayed.
// hardened: before any loss, systemd was configured with what the container is owed. locked: no other writer can change
//           the rules now.
// recreated: device nodes were recreated in the container ("mended" in JSON).
// shielded: the rules refused it, the shield kept it open, and the rules were repaired: nothing was lost.
// completed: a new container got what it is owed and its runtime did not give it. No loss: it never had it.
enum class Action : std::uint8_t {
  none,
  observed,
  healed,
  failed,
  waits,
  hardened,
  locked,
  recreated,
  shielded,
  completed
};
std::string to_string(Action action);
std::optional<Action> parse_action(std::string_view text);

struct BlameRecord {
  std::uint64_t number = 0;  // counts up as long as the journal is kept
  std::int64_t at = 0;       // milliseconds since 1970
  std::string id;            // the container's
  std::string container;     // its title
  std::string engine;
  std::string name_space;             // of its pod
  std::optional<container::Pod> pod;  // only where its engine's CRI named it: an image cannot choose these names

  container::EventKind kind = container::EventKind::attach;
  container::Hierarchy hierarchy = container::Hierarchy::v2;
  std::string cgroup;
  container::Writer writer;
  std::optional<container::ProgramId> program;
  std::optional<container::ProgramId> replaced;
  std::string text;  // what was written, on v1

  std::vector<std::string> lost;     // rules in force before and not after: "c 195:0 rw"
  std::vector<std::string> gained;   // rules in force after and not before
  std::vector<std::string> devices;  // owed device nodes that could not be opened: "/dev/nvidia0"
  std::string doubt;                 // why `lost` and `gained` may be incomplete

  Action action = Action::none;
  std::vector<std::string> steps;        // what was done
  std::optional<std::uint64_t> loss_ns;  // from the change until access was restored; absent: not lost, or still lost
  std::optional<std::uint64_t> heal_ns;  // the part of it that the repair itself took
  bool is_shielded = false;              // the shield kept all of `devices` open
  std::uint64_t held_opens = 0;          // requests that only the shield let through
  std::string error;                     // why it failed

  [[nodiscard]] bool is_loss() const { return !devices.empty() && !is_shielded && action != Action::completed; }
};

// Shared by the snapshots and by all that show the record.
using BlameRecordPtr = std::shared_ptr<const BlameRecord>;

// The limit of a record as one line of JSON, in the journal and in streams: long texts and lists are truncated to fit.
inline constexpr std::size_t kMostLine = std::size_t(1) << 20;

}  // namespace hf::report
