// DemoReport: the measurements of `holdfast demo`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/container/cgroup/cgroup_path.h"
#include "core/report/finding.h"

namespace hf::report {

// Percentiles of durations in nanoseconds, by nearest rank: each value is one that was measured.
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
  std::uint64_t outages = 0;  // series of refused opens in a row
  std::uint64_t longest_ns = 0;
};

struct DemoContainer {
  std::string id;
  container::Hierarchy hierarchy = container::Hierarchy::v2;  // the one that decides about its devices
  std::string launcher;                                       // "runc 1.1.5", "built-in"
  std::string cgroup;
  std::vector<std::string> nodes;  // the device nodes of its GPU
  bool is_stand_in = false;        // no GPU is behind these nodes
  std::vector<std::string> notes;  // why a fallback was used, such as another launcher

  // Without the guard.
  std::string attack;              // what took the GPU away, as text
  std::string refusal;             // what open(2) said then: "EPERM"
  std::uint64_t lost_ns = 0;       // until the guard was started; without it, until the container is restarted
  std::optional<Finding> finding;  // the doctor's

  // With the guard.
  std::map<std::string, std::uint64_t> attacks;  // by description
  std::string delay;                             // why the guard puts a repair off; "" where it does not
  std::uint64_t overtaken = 0;                   // attacks that failed, as access was restored before they ended
  std::uint64_t repaired = 0;                    // attacks after which the program inside could open the GPU again
  std::vector<std::uint64_t> losses_ns;          // durations, as the guard recorded them
  std::uint64_t held = 0;                        // rewrites of its rules that the shield kept from being losses
  std::uint64_t held_opens = 0;                  // opens that only the shield let through
  std::map<std::string, std::uint64_t> writers;  // changes by the writer that the guard named
  Opens seen;

  [[nodiscard]] std::uint64_t attack_count() const;
};

struct DemoReport {
  std::string kernel;
  std::string layout;    // "v1", "v2", "hybrid"
  std::string watching;  // the tiers that the guard uses: "v2=tracepoints v1=files"
  std::uint64_t guarded_ms = 0;
  bool is_interrupted = false;
  std::vector<DemoContainer> containers;

  // Every attack was repaired, and there was one at least on each container.
  [[nodiscard]] bool has_held() const;
};

// A line of the timeline.
struct DemoMoment {
  std::uint64_t seconds = 0;
  std::uint64_t attacks = 0;
  std::uint64_t repaired = 0;
  Spread losses;
  std::uint64_t refused = 0;  // opens of the program inside that were refused
  std::string last_writer;
};

}  // namespace hf::report
