#include "support/cpu_vectors.h"

#include <fstream>
#include <stdexcept>

#include "support/vectors.h"

namespace hf::test {
namespace {

nlohmann::json read_vectors() {
  std::ifstream file(vectors_directory() + "/cpu/kubelet-tables.json");
  return file ? nlohmann::json::parse(file) : nlohmann::json();
}

}  // namespace

const nlohmann::json& cpu_vectors() {
  static const nlohmann::json vectors = read_vectors();
  return vectors;
}

cpu::Topology topology_of(const nlohmann::json& json) {
  std::vector<cpu::Cpu> rows;
  for (const nlohmann::json& row : json["cpus"]) {
    rows.push_back({row[0], row[1], row[2], cpu::NumaId{row[3]}, row[4]});
  }
  cpu::Topology topology = cpu::make_topology(std::move(rows)).value();
  topology.counters = {.cpus = json["num_cpus"],
                       .cores = json["num_cores"],
                       .sockets = json["num_sockets"],
                       .numa_nodes = json["num_numa_nodes"],
                       .caches = json["num_uncore_cache"]};
  return topology;
}

cpu::Topology recorded_topology(const std::string& name) { return topology_of(cpu_vectors()["topologies"].at(name)); }

cpu::CpuSet cpus(const nlohmann::json& text) { return cpu::parse_cpu_set(text.get<std::string>()).value(); }

std::string error_of(const nlohmann::json& entry) {
  return entry["error"].is_null() ? "" : entry["error"].get<std::string>();
}

}  // namespace hf::test
