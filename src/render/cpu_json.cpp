#include <nlohmann/json.hpp>

#include "render/cpu.h"
#include "render/json_string.h"

namespace hf::report {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json nodes_of(const std::vector<cpu::NumaId>& nodes) {
  Json list = Json::array();
  for (const cpu::NumaId node : nodes) {
    list.push_back(node.value);
  }
  return list;
}

// The sets of nodes that are preferred: with the topology manager's stricter policies no other will do.
Json preferred_in(const cpu::Hints& hints) {
  if (!hints) {
    return nullptr;
  }
  Json preferred = Json::array();
  for (const cpu::Hint& hint : *hints) {
    if (hint.is_preferred) {
      preferred.push_back(nodes_of(hint.nodes));
    }
  }
  return preferred;
}

Json options_of(const cpu::Options& options) {
  Json json = Json::object();
  for (const auto& [name, is_set] : option_values(options)) {
    json[name] = is_set;
  }
  return json;
}

Json state_of(const cpu::State& state) {
  Json entries = Json::array();
  for (const auto& [owner, cpus] : state.entries) {
    entries.push_back({{"pod", owner.pod}, {"container", owner.container}, {"cpus", to_string(cpus)}});
  }
  Json pods = Json::array();
  for (const auto& [pod, cpus] : state.pods) {
    pods.push_back({{"pod", pod}, {"cpus", to_string(cpus)}});
  }
  return {{"shared", to_string(state.shared)}, {"entries", std::move(entries)}, {"pods", std::move(pods)}};
}

}  // namespace

std::string render_json(const CpuMap& map) {
  const cpu::Topology& topology = map.topology;
  Json rows = Json::array();
  for (const cpu::Cpu& cpu : topology.cpus) {
    rows.push_back({cpu.id, cpu.core, cpu.socket, cpu.numa.value, cpu.cache});
  }
  Json distances = Json::array();
  for (const cpu::Distance& distance : topology.distances) {
    distances.push_back({distance.from.value, distance.to.value, distance.value});
  }
  Json devices = Json::array();
  for (const cpu::DeviceLocation& device : topology.devices) {
    devices.push_back({{"name", device.name}, {"numa", device.numa ? Json(device.numa->value) : Json(nullptr)}});
  }
  Json json = {{"version", 1},
               {"source", map.source},
               {"num_cpus", topology.counters.cpus},
               {"num_cores", topology.counters.cores},
               {"num_sockets", topology.counters.sockets},
               {"num_numa_nodes", topology.counters.numa_nodes},
               {"num_uncore_cache", topology.counters.caches},
               {"cpus", std::move(rows)},
               {"distances", std::move(distances)},
               {"devices", std::move(devices)},
               {"offline", to_string(topology.offline)},
               {"isolated", to_string(topology.isolated)},
               {"efficient", to_string(topology.efficient)}};
  if (!topology.model.empty()) {
    json["model"] = topology.model;
  }
  if (!topology.memory.empty()) {
    json["memory"] = Json::array();
    for (const cpu::NodeMemory& memory : topology.memory) {
      json["memory"].push_back({memory.node.value, memory.bytes});
    }
  }
  if (map.state) {
    json["state"] = state_of(*map.state);
  }
  return render_document(json);
}

std::string render_json(const CpuPlan& plan) {
  Json by_node = Json::array();
  for (const cpu::NumaId node : numa_nodes(plan.topology)) {
    const cpu::CpuSet here = plan.cpus & cpus_of(plan.topology, node);
    if (!here.empty()) {
      by_node.push_back({{"node", node.value}, {"cpus", to_string(here)}});
    }
  }
  Json steps = Json::array();
  for (const cpu::Step& step : plan.explanation) {
    steps.push_back({{"because", step.because}, {"cpus", to_string(step.cpus)}});
  }
  return render_document({{"version", 1},
                          {"cpus", to_string(plan.cpus)},
                          {"error", or_null(plan.error)},
                          {"requested", plan.requested},
                          {"topology", plan.source},
                          {"options", options_of(plan.options)},
                          {"reserved", to_string(plan.reserved)},
                          {"free", to_string(plan.free)},
                          {"hint", plan.preference.hint ? nodes_of(*plan.preference.hint) : Json(nullptr)},
                          {"device_nodes", nodes_of(plan.preference.device_nodes)},
                          {"numa", std::move(by_node)},
                          {"steps", std::move(steps)}});
}

std::string render_json(const cpu::Simulation& simulation) {
  Json steps = Json::array();
  for (const cpu::StepResult& result : simulation.steps) {
    steps.push_back({{"op", to_string(result.step.operation)},
                     {"pod", result.step.pod.uid},
                     {"container", result.step.container},
                     {"result", to_string(result.cpus)},
                     {"default_after", to_string(result.shared_after)},
                     {"preferred_numa", preferred_in(result.hints)},
                     {"error", or_null(result.error)}});
  }
  return render_document({{"version", 1},
                          {"reserved", to_string(simulation.reserved)},
                          {"steps", std::move(steps)},
                          {"state", state_of(simulation.state)}});
}

std::string render_json(const CpuStateReport& report) {
  Json problems = Json::array();
  for (const CpuStateReport::Problem& problem : report.problems) {
    problems.push_back({{"what", problem.what}, {"kubelet_says", or_null(problem.kubelet_says)}});
  }
  Json unnamed = Json::array();
  for (const auto& [id, cpus] : report.unnamed) {
    unnamed.push_back({{"id", id}, {"cpus", to_string(cpus)}});
  }
  Json json = {{"version", 1},
               {"file", report.file},
               {"sound", report.problems.empty()},
               {"format", or_null(report.format)},
               {"policy", or_null(report.policy)},
               {"checked", report.is_checked},
               {"problems", std::move(problems)},
               {"cure", report.cure},
               {"notes", report.notes},
               {"unnamed", std::move(unnamed)}};
  json.update(state_of(report.state));
  return render_document(json);
}

}  // namespace hf::report
