// CpuReport: what `holdfast cpu` shows: machines, plans, simulations and states, as text, JSON and SVG.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/cpu/policy.h"
#include "core/cpu/simulate.h"
#include "core/cpu/topology.h"

namespace hf::report {

// A machine and, where there is a state, the owner of each core.
struct CpuMap {
  std::string source;  // "this machine", or the file
  cpu::Topology topology;
  std::optional<cpu::State> state;
};

struct CpuPlan {
  std::string source;
  std::uint32_t requested = 0;
  cpu::Options options = {};
  cpu::CpuSet reserved = {};
  cpu::CpuSet free = {};
  cpu::Wish wish = {};
  cpu::Topology topology = {};
  cpu::CpuSet cpus = {};
  cpu::Story story = {};
  std::string error = {};  // kubelet's message; "" where it can be done
};

struct CpuStateReport {
  std::string file;
  std::string format = {};  // "v2"; "" where it cannot be read
  std::string policy = {};
  bool is_checked = true;  // it has a checksum
  cpu::State state = {};
  std::vector<std::pair<std::string, cpu::CpuSet>> unnamed = {};  // of v1: container ids without a known pod and name
  struct Problem {
    std::string what;
    std::string kubelet_says;  // "": kubelet does not notice it
  };
  std::vector<Problem> problems = {};
  std::vector<std::string> cure = {};
  std::vector<std::string> notes = {};
};

}  // namespace hf::report
