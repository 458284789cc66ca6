// DemoReport: what `holdfast demo` showed, in figures.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/container/cgroup_path.h"
#include "core/report/finding.h"

namespace hf::report {

// Of durations in nanoseconds, by nearest rank: each is one that was measured.
struct Spread {
  std::uint64_t count = 0;
  std::uint64_t median = 0;
  std::uint64_t p99 = 0;
  std::uint64_t max = 0;

  friend bool operator==(const Spread&, const Spread&) = default;
};
Spread spread_of(std::vector<std::uint64_t> durations);

// What the program inside the container saw.
struct Opens {
  std::uint64_t count = 0;
  std::uint64_t refused = 0;
  std::uint64_t outages = 0;  // runs of refused opens
  std::uint64_t longest_ns = 0;
};

struct DemoContainer {
  std::string id;
  container::Hierarchy hierarchy = container::Hierarchy::v2;  // that decides about its devices
  std::string launcher;                                       // "runc 1.1.5", "built-in"
  std::string cgroup;
  std::vector<std::string> nodes;  // of its GPU
  bool is_stand_in = false;        // no GPU is behind them
  std::vector<std::string> notes;  // why it is not as it might be

  // Without the guard.
  std::string attack;              // what took the GPU away, in words
  std::string refusal;             // what open(2) said then: "EPERM"
  std::uint64_t lost_ns = 0;       // until the guard came; without it, until somebody restarts the container
  std::optional<Finding> finding;  // the doctor's

  // With it.
  std::map<std::string, std::uint64_t> attacks;  // by their words
  std::uint64_t overtaken = 0;                   // attacks that failed, as it was given back before they were done
  std::uint64_t repaired = 0;                    // after which the program inside could open it again
  std::vector<std::uint64_t> losses_ns;          // as the guard recorded them
  std::uint64_t held = 0;                        // rewrites of its rules that the shield kept from being losses
  std::uint64_t held_opens = 0;                  // opens that only the shield let through
  std::map<std::string, std::uint64_t> writers;  // whom it named
  Opens seen;

  [[nodiscard]] std::uint64_t attack_count() const;
};

struct DemoReport {
  std::string kernel;
  std::string layout;    // "v1", "v2", "hybrid"
  std::string watching;  // the guard's words on how it hears of changes
  std::uint64_t guarded_ms = 0;
  bool is_interrupted = false;
  std::vector<DemoContainer> containers;

  // Every attack was repaired, and there was one at least on each container.
  [[nodiscard]] bool has_held() const;
};

std::string render_text(const DemoReport& report);  // the summary, the verdict first
std::string render_json(const DemoReport& report);

// A line of the timeline, and what stands above its columns.
struct DemoMoment {
  std::uint64_t seconds = 0;
  std::uint64_t attacks = 0;
  std::uint64_t repaired = 0;
  Spread losses;
  std::uint64_t refused = 0;  // opens, of the program inside
  std::string last_writer;
};
std::string head_of_timeline();
std::string render_line(const DemoMoment& moment);

}  // namespace hf::report
