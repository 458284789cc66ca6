// RandomMachine: random CPU topologies for tests, also uneven ones: with missing threads or cores of two kinds.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/cpu/machine.h"
#include "support/random.h"

namespace hf::test {

inline cpu::CpuSet random_part(Random& random, const cpu::CpuSet& whole, std::uint32_t one_in) {
  cpu::CpuSet part;
  for (const std::uint32_t cpu : whole) {
    if (!random.one_in(one_in)) {
      part.add(cpu);
    }
  }
  return part;
}

inline cpu::Topology random_machine(Random& random) {
  const cpu::Shape shape{.sockets = 1 + random.below(3),
                         .nodes_per_socket = 1 + random.below(3),
                         .caches_per_node = 1 + random.below(3),
                         .cores_per_cache = 1 + random.below(4),
                         .threads = 1 + random.below(3)};
  std::vector<cpu::Cpu> rows = cpu::build(shape).cpus;
  const std::uint32_t kind = random.below(4);
  std::erase_if(rows, [&](const cpu::Cpu& cpu) {
    const bool is_second = cpu.id != cpu.core;
    return (kind == 1 && is_second && random.one_in(4)) ||   // offline threads
           (kind == 2 && is_second && cpu.core % 4 >= 2) ||  // hybrid: half the cores have one thread
           (kind == 3 && cpu.numa.value == 0 && random.one_in(3) && cpu.core != 0);  // a smaller NUMA node
  });
  if (random.one_in(3) && shape.nodes_per_socket == 1) {  // two sockets share one NUMA node
    for (cpu::Cpu& cpu : rows) {
      cpu.numa = {cpu.numa.value / 2};
    }
  }
  return *cpu::make_topology(std::move(rows));
}

inline std::string describe(const cpu::Topology& topology) {
  std::string text;
  for (const cpu::Cpu& cpu : topology.cpus) {
    text += "[" + std::to_string(cpu.id) + "," + std::to_string(cpu.core) + "," + std::to_string(cpu.socket) + "," +
            std::to_string(cpu.numa.value) + "," + std::to_string(cpu.cache) + "]";
  }
  return text;
}

}  // namespace hf::test
