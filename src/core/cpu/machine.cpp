#include "core/cpu/machine.h"

#include <algorithm>
#include <array>

namespace hf::cpu {
namespace {

// The values of these servers' ACPI tables.
struct Distances {
  std::uint32_t within_socket;
  std::uint32_t between_sockets;
};

struct Entry {
  const char* name;
  const char* description;
  Shape shape;
  Distances distances;
  std::string_view gpu_nodes;  // one digit for each GPU
};

constexpr std::array kMachines = {
    Entry{"dgx-a100",
          "NVIDIA DGX A100: 2 x EPYC 7742, 8 NUMA nodes, 256 CPUs, 8 GPUs",
          {2, 4, 4, 4, 2},
          {12, 32},
          "33117755"},
    Entry{"dgx-h100",
          "NVIDIA DGX H100: 2 x Xeon 8480C, 2 NUMA nodes, 224 CPUs, 8 GPUs",
          {2, 1, 1, 56, 2},
          {10, 21},
          "00001111"},
    Entry{"hgx-epyc-9554",
          "HGX with 2 x EPYC 9554, 2 NUMA nodes, 256 CPUs, 8 GPUs",
          {2, 1, 8, 8, 2},
          {10, 32},
          "00001111"},
    Entry{"workstation", "one socket, 8 cores, 16 CPUs, 1 GPU", {1, 1, 1, 8, 2}, {10, 10}, "0"},
};

void add_distances(Topology& topology, const Shape& shape, const Distances& distances) {
  for (std::uint32_t from = 0; from < shape.sockets * shape.nodes_per_socket; ++from) {
    for (std::uint32_t to = 0; to < shape.sockets * shape.nodes_per_socket; ++to) {
      const bool is_near = from / shape.nodes_per_socket == to / shape.nodes_per_socket;
      const std::uint32_t value = from == to ? 10 : is_near ? distances.within_socket : distances.between_sockets;
      topology.distances.push_back({.from = {from}, .to = {to}, .value = value});
    }
  }
}

}  // namespace

Topology build(const Shape& shape) {
  const std::uint32_t caches = shape.sockets * shape.nodes_per_socket * shape.caches_per_node;
  const std::uint32_t cores = caches * shape.cores_per_cache;
  std::vector<Cpu> rows;
  for (std::uint32_t thread = 0; thread < shape.threads; ++thread) {
    for (std::uint32_t core = 0; core < cores; ++core) {
      const std::uint32_t cache = core / shape.cores_per_cache;
      const std::uint32_t node = cache / shape.caches_per_node;
      rows.push_back({.id = thread * cores + core,
                      .core = core,
                      .socket = node / shape.nodes_per_socket,
                      .numa = {node},
                      .cache = cache});
    }
  }
  return make_topology(std::move(rows)).value_or(Topology());
}

std::vector<KnownMachine> known_machines() {
  std::vector<KnownMachine> machines;
  machines.reserve(kMachines.size());
  for (const Entry& entry : kMachines) {
    machines.push_back({entry.name, entry.description});
  }
  return machines;
}

std::optional<Topology> find_machine(std::string_view name) {
  const auto* const found = std::ranges::find(kMachines, name, &Entry::name);
  if (found == kMachines.end()) {
    return std::nullopt;
  }
  Topology topology = build(found->shape);
  add_distances(topology, found->shape, found->distances);
  for (std::size_t gpu = 0; gpu < found->gpu_nodes.size(); ++gpu) {
    topology.devices.push_back(
        {.name = "/dev/nvidia" + std::to_string(gpu), .numa = NumaId{std::uint32_t(found->gpu_nodes[gpu] - '0')}});
  }
  return topology;
}

}  // namespace hf::cpu
