// Machine: generated topologies: any shape for tests and benchmarks, and well-known servers by name for planning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cpu/topology.h"

namespace hf::cpu {

struct Shape {
  std::uint32_t sockets = 1;
  std::uint32_t nodes_per_socket = 1;
  std::uint32_t caches_per_node = 1;
  std::uint32_t cores_per_cache = 1;
  std::uint32_t threads = 1;
};

// CPUs are numbered like in Linux: the first thread of every core, then the second of every core, …
Topology build(const Shape& shape);

struct KnownMachine {
  std::string name;  // "dgx-a100"
  std::string description;
};
std::vector<KnownMachine> known_machines();
std::optional<Topology> find_machine(std::string_view name);

}  // namespace hf::cpu
