// CpuReport: what `holdfast cpu` shows: machines, plans, simulations and states, as text, JSON and a picture.
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

// A machine, and, with a state, who owns which core.
struct CpuMap {
  std::string source;  // "this machine", or the file
  cpu::Topology topology;
  std::optional<cpu::State> state;
};
std::string render_text(const CpuMap& map);
std::string render_json(const CpuMap& map);  // a topology file again, and the owners
std::string render_svg(const CpuMap& map);

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
  std::string error = {};  // kubelet's words; "" where it can be done
};
std::string render_text(const CpuPlan& plan);
std::string render_json(const CpuPlan& plan);

std::string render_text(const cpu::Simulation& simulation);
std::string render_json(const cpu::Simulation& simulation);

struct CpuStateReport {
  std::string file;
  std::string format = {};  // "v2"; "" where it cannot be read
  std::string policy = {};
  bool is_checked = true;  // it has a checksum
  cpu::State state = {};
  std::vector<std::pair<std::string, cpu::CpuSet>> unnamed = {};  // of v1: container ids that nobody can name
  struct Problem {
    std::string what;
    std::string kubelet_says;  // "": it does not notice
  };
  std::vector<Problem> problems = {};
  std::vector<std::string> cure = {};
  std::vector<std::string> notes = {};
};
std::string render_text(const CpuStateReport& report);
std::string render_json(const CpuStateReport& report);

}  // namespace hf::report
