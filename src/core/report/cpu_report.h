// CpuReport: what `holdfast cpu` shows: machines, plans, simulations and states, as text, JSON and SVG.
#pragma once

#include <cstdint>
#include <map>
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
  std::map<std::string, std::string> pod_names = {};  // by uid, where they are known
};

struct CpuPlan {
  std::string source;
  std::uint32_t requested = 0;
  cpu::Options options = {};
  cpu::CpuSet reserved = {};
  cpu::CpuSet free = {};
  cpu::NumaPreference preference = {};
  cpu::Topology topology = {};
  cpu::CpuSet cpus = {};
  cpu::Explanation explanation = {};
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

// A container as the CPU manager sees it.
struct CpuContainer {
  std::string title;
  std::string name_space;  // of its pod, or containerd's
  std::string id;
  std::string engine;
  bool is_exclusive = false;
  std::uint32_t requested = 0;            // exclusive CPUs; 0: none
  cpu::CpuSet cpus;                       // that it is to run on
  cpu::CpuSet present;                    // its cpuset, as the kernel reports it
  std::vector<cpu::NumaId> nodes;         // of `cpus`
  std::vector<cpu::NumaId> device_nodes;  // of its devices
  std::optional<std::uint32_t> distance;  // from its devices to the farthest of `nodes`; 10: the same node
  std::string problem;                    // why it does not have what it asks for; "": it has
};

// What `holdfast cpu status` shows.
struct CpuStatus {
  cpu::CpuSet online;
  cpu::CpuSet pool;
  cpu::CpuSet reserved;
  std::vector<CpuContainer> containers;  // exclusive ones first
  std::string problem;                   // why CPUs are not managed; "": they are
  cpu::Topology topology;
  cpu::State state;
};

}  // namespace hf::report
