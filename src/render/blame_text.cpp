#include <algorithm>
#include <array>
#include <cstdio>

#include "core/base/text.h"
#include "core/container/container.h"
#include "render/blame.h"
#include "render/text_table.h"
#include "render/time.h"

namespace hf::report {
namespace {

std::string line_of(const std::string& text) { return with_short_ids(on_one_line(text)) + "\n"; }

std::string list_of(std::vector<std::string> entries) {
  constexpr std::size_t kMostShown = 8;
  const std::size_t count = entries.size();
  if (count > kMostShown) {
    entries.resize(kMostShown);
    entries.push_back("and " + std::to_string(count - kMostShown) + " more");
  }
  return join(entries, ", ");
}

std::string programs_of(const BlameRecord& record) {
  if (!record.program) {
    return "";
  }
  return " (program " + std::to_string(record.program->value) +
         (record.replaced ? " instead of " + std::to_string(record.replaced->value) : "") + ")";
}

std::string what_happened(const BlameRecord& record) {
  const std::string text = to_string(record.kind) + " by " + title_of(record.writer) + programs_of(record);
  return record.text.empty() ? text : text + " of " + quote(trim(record.text));
}

std::string ancestry_of(const container::Writer& writer) {
  const std::string text = writer.command.empty() ? "" : line_of("    command: " + writer.command);
  std::vector<std::string> parents;
  parents.reserve(writer.parents.size());
  for (const container::Ancestor& parent : writer.parents) {
    parents.push_back(parent.name + " (" + std::to_string(parent.pid.value) + ")");
  }
  return parents.empty() ? text : text + line_of("    started by: " + list_of(parents));
}

std::string times_of(const BlameRecord& record) {
  return (record.loss_ns ? " after " + render_duration(*record.loss_ns) : "") +
         (record.heal_ns ? ", " + render_duration(*record.heal_ns) + " of it our work" : "");
}

std::string with(const std::string& head, const std::string& tail) { return tail.empty() ? head : head + ": " + tail; }

std::string held_by_the_shield(const BlameRecord& record) {
  const std::string opens = record.held_opens == 0   ? "nothing was opened meanwhile"
                            : record.held_opens == 1 ? "1 open would have failed"
                                                     : std::to_string(record.held_opens) + " opens would have failed";
  return opens + (record.heal_ns ? ", the rules were repaired after " + render_duration(*record.heal_ns) : "");
}

std::string what_was_done(const BlameRecord& record) {
  const std::string steps = list_of(record.steps);
  switch (record.action) {
    case Action::none: return "";
    case Action::observed: return marked(kYellow, "observed") + ": the policy says to observe only";
    case Action::healed: return with(marked(kGreen, "healed") + times_of(record), steps);
    case Action::recreated: return with(marked(kGreen, "mended") + times_of(record), steps);
    case Action::shielded: return with(marked(kGreen, "shielded") + ": " + held_by_the_shield(record), steps);
    case Action::completed: return with(marked(kGreen, "completed") + ": its runtime had not given it all", steps);
    case Action::hardened: return with(marked(kGreen, "hardened"), steps);
    case Action::locked: return with(marked(kGreen, "locked"), steps);
    case Action::failed: return with(marked(kRed, "not healed"), record.error);
    case Action::waits: return with(marked(kYellow, "waits"), record.error);
  }
  return "";
}

std::string summary_of(const std::vector<BlameRecord>& records) {
  std::size_t losses = 0;
  std::size_t lasting = 0;
  std::uint64_t longest = 0;
  for (const BlameRecord& record : records) {
    losses += record.is_loss() ? 1 : 0;
    lasting += record.is_loss() && !record.loss_ns ? 1 : 0;
    longest = std::max(longest, record.loss_ns.value_or(0));
  }
  return std::to_string(records.size()) + (records.size() == 1 ? " change, " : " changes, ") + std::to_string(losses) +
         (losses == 1 ? " loss" : " losses") + (longest > 0 ? ", the longest " + render_duration(longest) : "") +
         (lasting > 0 ? ", " + std::to_string(lasting) + " not restored in that moment" : "") + "\n";
}

std::string short_action(const BlameRecord& record) {
  switch (record.action) {
    case Action::none: return "-";
    case Action::failed: return marked(kRed, "not healed");
    case Action::observed:
    case Action::waits: return marked(kYellow, to_string(record.action));
    default: break;
  }
  return marked(kGreen, to_string(record.action)) +
         (record.loss_ns ? " after " + render_duration(*record.loss_ns) : std::string());
}

}  // namespace

std::vector<std::string> blame_columns() { return {"TIME", "CONTAINER", "CHANGE", "LOST", "DONE"}; }

std::vector<std::string> cells_of(const BlameRecord& record) {
  const std::string place = container::shown_name_space(record.engine, record.name_space);
  const std::string name_space = place.empty() ? "" : place + "/";
  return {render_moment(record.at), with_short_ids(name_space + record.container),
          with_short_ids(what_happened(record)), record.is_loss() ? marked(kRed, list_of(record.devices)) : "-",
          short_action(record)};
}

std::string render_text(const BlameRecord& record) {
  const std::string place = container::shown_name_space(record.engine, record.name_space);
  const std::string name_space = place.empty() ? "" : " (" + place + ")";
  std::string text = line_of(render_moment(record.at) + "  " + marked(kBold, record.container) + name_space + ": " +
                             what_happened(record));
  text += record.lost.empty() ? "" : line_of("    " + marked(kRed, "lost") + " " + list_of(record.lost));
  text += record.gained.empty() ? "" : line_of("    gained " + list_of(record.gained));
  text += record.is_loss() ? line_of("    could not open " + list_of(record.devices)) : "";
  text += record.is_shielded ? line_of("    could still open " + list_of(record.devices)) : "";
  text += record.doubt.empty() ? "" : line_of("    but " + record.doubt);
  text += ancestry_of(record.writer);
  const std::string done = what_was_done(record);
  return done.empty() ? text : text + line_of("    " + done);
}

std::string render_text(const std::vector<BlameRecord>& records) {
  if (records.empty()) {
    return "nothing is recorded\n";
  }
  std::string text;
  for (const BlameRecord& record : records) {
    text += render_text(record);
  }
  return text + summary_of(records);
}

}  // namespace hf::report
