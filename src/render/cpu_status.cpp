#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "render/cpu.h"
#include "render/text_table.h"

namespace hf::report {
namespace {

using Json = nlohmann::ordered_json;

std::string list_of(const std::vector<cpu::NumaId>& nodes) {
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const cpu::NumaId node : nodes) {
    names.push_back(std::to_string(node.value));
  }
  return join(names, ",");
}

Json json_list_of(const std::vector<cpu::NumaId>& nodes) {
  Json numbers = Json::array();
  for (const cpu::NumaId node : nodes) {
    numbers.push_back(node.value);
  }
  return numbers;
}

Json json_of(const CpuContainer& one) {
  Json json = {{"container", one.title},
               {"namespace", one.name_space},
               {"id", one.id},
               {"engine", one.engine},
               {"exclusive", one.is_exclusive},
               {"requested", one.requested},
               {"cpus", to_string(one.cpus)},
               {"present", to_string(one.present)},
               {"numa", json_list_of(one.nodes)},
               {"device_numa", json_list_of(one.device_nodes)}};
  if (one.distance) {
    json["distance"] = *one.distance;
  }
  if (!one.problem.empty()) {
    json["problem"] = one.problem;
  }
  return json;
}

std::string verdict_of(const CpuStatus& status) {
  const auto owners = std::ranges::count_if(status.containers, &CpuContainer::is_exclusive);
  const auto problems =
      std::ranges::count_if(status.containers, [](const CpuContainer& one) { return !one.problem.empty(); });
  const std::string owned =
      owners == 1 ? "1 container has CPUs of its own" : std::to_string(owners) + " containers have CPUs of their own";
  return problems == 0 ? marked(kGreen, owned)
                       : marked(kYellow, owned + "; not as it should be: " + std::to_string(problems));
}

}  // namespace

std::vector<std::string> cpu_columns() { return {"CONTAINER", "CPUS", "NUMA", "DEVICES ON", "DISTANCE", "PROBLEM"}; }

std::vector<std::string> cells_of(const CpuContainer& one) {
  return {on_one_line(one.title),
          one.is_exclusive ? to_string(one.cpus) : "shared " + to_string(one.cpus),
          or_dash(list_of(one.nodes)),
          or_dash(list_of(one.device_nodes)),
          one.distance ? std::to_string(*one.distance) : "-",
          or_dash(on_one_line(one.problem))};
}

std::string render_text(const CpuStatus& status, std::size_t columns) {
  if (!status.problem.empty()) {
    return marked(kYellow, "CPUs are not managed") + ": " + on_one_line(status.problem) + "\n";
  }
  std::string text = verdict_of(status) + "\n";
  text += "shared pool " + or_dash(to_string(status.pool)) + ", of these reserved for the system " +
          or_dash(to_string(status.reserved & status.pool)) + ", online " + to_string(status.online) + "\n";
  TextTable table(cpu_columns(), columns);
  for (const CpuContainer& one : status.containers) {
    table.add(cells_of(one));
  }
  return status.containers.empty() ? text : text + table.render();
}

std::string render_json(const CpuStatus& status) {
  Json containers = Json::array();
  for (const CpuContainer& one : status.containers) {
    containers.push_back(json_of(one));
  }
  Json json = {{"version", 1}, {"managed", status.problem.empty()}};
  if (!status.problem.empty()) {
    json["problem"] = status.problem;
  }
  json.update({{"online", to_string(status.online)},
               {"pool", to_string(status.pool)},
               {"reserved", to_string(status.reserved)},
               {"containers", std::move(containers)}});
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace hf::report
