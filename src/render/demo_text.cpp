#include "render/demo.h"

#include <algorithm>

#include "core/base/text.h"
#include "render/blame.h"
#include "render/text_table.h"
#include "render/time.h"

namespace hf::report {
namespace {

constexpr std::size_t kMostWriters = 3;

// A character of several bytes counts once.
std::size_t characters_in(std::string_view text) {
  return std::size_t(
      std::ranges::count_if(text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U; }));
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, characters_in(text)), ' ') + text;
}

std::string columns(const std::vector<std::string>& cells, const std::string& last) {
  constexpr std::size_t kWidth = 10;
  std::string line;
  for (const std::string& cell : cells) {
    line += right(cell, kWidth);
  }
  return line + "   " + last;
}

std::string duration_or_dash(std::uint64_t nanoseconds) {
  return nanoseconds == 0 ? std::string("-") : render_duration(nanoseconds);
}

std::string verdict_of(const DemoReport& report) {
  std::uint64_t attacks = 0;
  std::uint64_t repaired = 0;
  std::vector<std::uint64_t> losses;
  for (const DemoContainer& it : report.containers) {
    attacks += it.attack_count();
    repaired += it.repaired;
    losses.insert(losses.end(), it.losses_ns.begin(), it.losses_ns.end());
  }
  if (report.is_interrupted) {
    return marked(kYellow, "interrupted") + " after " + count_of(attacks, "attack") + ", " + std::to_string(repaired) +
           " repaired";
  }
  if (!report.has_held()) {
    return marked(kRed, "not held") + ": " + count_of(attacks, "attack") + ", " + std::to_string(attacks - repaired) +
           " not repaired";
  }
  const Spread spread = spread_of(std::move(losses));
  std::string shielded;
  for (const DemoContainer& it : report.containers) {
    if (it.held > 0) {
      shielded += std::string("; behind the shield (cgroup v2) ") + count_of(it.seen.refused, "open") + " refused";
    }
  }
  const std::string where = shielded.empty() || spread.count == 0 ? "" : " on cgroup v1";
  return marked(kGreen, "held") + ": " + count_of(attacks, "attack") + ", all repaired" +
         (spread.count > 0 ? ", in " + render_duration(spread.median) + " (median)" + where : std::string()) + shielded;
}

std::string writers_of(const DemoContainer& it) {
  std::vector<std::pair<std::uint64_t, std::string>> ranked;
  ranked.reserve(it.writers.size());
  for (const auto& [name, count] : it.writers) {
    ranked.emplace_back(count, name);
  }
  std::ranges::sort(ranked, std::greater<>());
  std::vector<std::string> names;
  for (const auto& [count, name] : ranked) {
    if (names.size() < kMostWriters) {
      names.push_back(name + " (" + std::to_string(count) + ")");
    }
  }
  return join(names, ", ");
}

void add_rows(const DemoContainer& it, TextTable& table) {
  const Spread spread = spread_of(it.losses_ns);
  std::vector<std::string> attacks;
  attacks.reserve(it.attacks.size());
  for (const auto& [attack, count] : it.attacks) {
    attacks.push_back(std::to_string(count) + " × " + attack);
  }
  table.add({"  attacks", join(attacks, "; ")});
  table.add({"  repaired", std::to_string(it.repaired) + " of " + std::to_string(it.attack_count()) +
                               (it.overtaken > 0 ? ", " + std::to_string(it.overtaken) +
                                                       " before the attacker was done, which it took for an error"
                                                 : std::string())});
  if (spread.count > 0) {
    table.add({"  loss, by the guard's record",
               "median " + render_duration(spread.median) + ", p99 " + render_duration(spread.p99) + ", longest " +
                   render_duration(spread.max) + " (" + count_of(spread.count, "record") + ")"});
  }
  if (!it.delay.empty()) {
    table.add({"  of which it waits", it.delay});
  }
  if (it.held > 0) {
    table.add({"  held by the shield", count_of(it.held, "rewrite") + " of its rules, " +
                                           count_of(it.held_opens, "open") + " would have failed"});
  }
  table.add({"  seen by the program inside", count_of(it.seen.count, "open") + ", " + std::to_string(it.seen.refused) +
                                                 " refused, longest outage " + duration_or_dash(it.seen.longest_ns)});
  table.add({"  done by", writers_of(it)});
  table.add({"  without the guard", it.refusal + ", until the container is restarted (here for " +
                                        duration_or_dash(it.lost_ns) + ", until the guard was switched on)"});
}

}  // namespace

std::string render_text(const DemoReport& report) {
  std::string text = verdict_of(report) + "\n";
  for (const DemoContainer& it : report.containers) {
    TextTable table({marked(kBold, it.hierarchy == container::Hierarchy::v1 ? "cgroup v1" : "cgroup v2"),
                     on_one_line(it.id + ", " + it.launcher)});
    add_rows(it, table);
    text += table.render();
  }
  return text;
}

std::string head_of_timeline() {
  return columns({"time", "attacks", "repaired", "median", "p99", "longest", "refused"}, "done by");
}

std::string render_line(const DemoMoment& moment) {
  return columns(
      {std::to_string(moment.seconds) + " s", std::to_string(moment.attacks), std::to_string(moment.repaired),
       duration_or_dash(moment.losses.median), duration_or_dash(moment.losses.p99), duration_or_dash(moment.losses.max),
       std::to_string(moment.refused)},
      on_one_line(moment.last_writer));
}

}  // namespace hf::report
