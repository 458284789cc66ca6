// Blame: what happened to a container's rules: before and after, who did it, how long it hurt, what was done about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/container/event.h"

namespace hf::report {

// none:     nothing that is owed was lost.
// observed: something was, and the policy says to look on.
// healed:   it was given back. failed: it could not be. waits: somebody fights with us, and we take a breath.
// hardened: before any loss, systemd was told what the container is owed. locked: nobody else can change it now.
// mended:   nodes were made anew in the container.
// shielded: the rules refused it, the shield kept it open, and the rules were repaired: nothing was lost.
// completed: a new container was given what it is owed and its runtime did not give it. No loss: it never had it.
enum class Action : std::uint8_t {
  none,
  observed,
  healed,
  failed,
  waits,
  hardened,
  locked,
  mended,
  shielded,
  completed
};
std::string to_string(Action action);

struct BlameRecord {
  std::uint64_t number = 0;  // counts up as long as the journal is kept
  std::int64_t at = 0;       // milliseconds since 1970
  std::string id;            // the container's
  std::string container;     // what people call it
  std::string engine;
  std::string name_space;  // of its pod

  container::EventKind kind = container::EventKind::attach;
  container::Hierarchy hierarchy = container::Hierarchy::v2;
  std::string cgroup;
  container::Writer writer;
  std::optional<container::ProgramId> program;
  std::optional<container::ProgramId> replaced;
  std::string text;  // written, on v1

  std::vector<std::string> lost;     // rules that held before and not after: "c 195:0 rw"
  std::vector<std::string> gained;   // and the other way around
  std::vector<std::string> devices;  // owed nodes that could not be opened: "/dev/nvidia0"
  std::string doubt;                 // why the rules may not be the whole truth

  Action action = Action::none;
  std::vector<std::string> steps;        // what was done
  std::optional<std::uint64_t> loss_ns;  // from the change to access restored; absent: not lost, or still
  std::optional<std::uint64_t> heal_ns;  // of our work in it
  bool is_shielded = false;              // the shield kept all of `devices` open
  std::uint64_t held_opens = 0;          // requests that only the shield let through
  std::string error;                     // why it failed

  [[nodiscard]] bool is_loss() const { return !devices.empty() && !is_shielded && action != Action::completed; }
};

// JSON on one line, for the journal and for streams. Long texts and lists are cut, so that no line is above kMostLine.
inline constexpr std::size_t kMostLine = std::size_t(1) << 20;
std::string render_line(const BlameRecord& record);
Result<BlameRecord> parse_blame_record(std::string_view line);     // the same, back
std::string render_text(const std::vector<BlameRecord>& records);  // a timeline for people
std::string render_json(const std::vector<BlameRecord>& records);
std::string render_text(const BlameRecord& record);  // a few lines: `watch` prints them as they come

std::string render_duration(std::uint64_t nanoseconds);    // "38 µs", "1.2 ms", "4 s"
std::string render_moment(std::int64_t milliseconds);      // since 1970: "2026-11-15T05:14:08.123Z"
Result<std::int64_t> parse_moment(std::string_view text);  // the same, back

}  // namespace hf::report
