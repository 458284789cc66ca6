// Visit: one look at a container, and what it takes to give back what it is owed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/container/drift.h"
#include "core/container/event.h"
#include "core/report/blame.h"
#include "kernel/filters.h"
#include "services/guard/ward.h"

namespace hf::guard {

// Code for tables, proven once.
class Twins {
 public:
  Result<bpf::Code> code_for(const device::Table& table);

 private:
  struct Hash {
    std::size_t operator()(const device::Table& table) const;
  };
  std::unordered_map<device::Table, bpf::Code, Hash> codes_;
};

// What was put in the place of which program before: who comes again with the same is answered without a thought.
struct Habit {
  bpf::Code code;
  kernel::ProgramPtr twin;
};
using Habits = std::vector<Habit>;  // of one cgroup and one entitlement

struct Tools {
  kernel::Filters& filters;
  Twins& twins;
};

struct Visit {
  container::Drift drift;
  container::Repair repair;
  container::Drift left;  // after the repair
  container::Effective before;
  container::Effective after;
  std::uint64_t healed_at = 0;  // nanoseconds of CLOCK_MONOTONIC; 0: nothing was done
  int attempts = 1;
};

enum class Hands : std::uint8_t { look_only, may_heal };

// From the start again when somebody else was faster.
// `then` is called when something was given back, before all is looked at with care: who took it may be gone soon.
Result<Visit> visit(const Tools& tools, const Ward& ward, const kernel::CgroupsOfProcess& cgroups, Hands hands,
                    Habits& habits, const std::function<void()>& then = {});

// Programs that are loaded before they are needed; they stay as long as somebody holds them.
using Ready = std::vector<kernel::ProgramPtr>;
// The repaired twin of what is likely to come: of a filter that means this.
void prepare(const Tools& tools, const Ward& ward, const device::Table& likely, Ready& ready);
// A filter that means just this: what a container has now is what it will be given back.
void keep_ready(const Tools& tools, const device::Table& table, Ready& ready);

}  // namespace hf::guard
