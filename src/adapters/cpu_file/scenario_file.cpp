#include "adapters/cpu_file/scenario_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/cpu_file/topology_file.h"
#include "adapters/document/json.h"
#include "core/base/text.h"

namespace hf::cpu_file {
namespace {

using Json = document::OrderedJson;
using document::value_at;

constexpr double kMostCpusAsked = 1'000'000;

constexpr std::array<std::string_view, 8> kFields = {"topology", "topologies",  "policy", "options",
                                                     "reserved", "pod_budgets", "ops",    "comment"};
constexpr std::array<std::string_view, 9> kOpFields = {"op",       "pod",       "container",   "pod_containers", "cpus",
                                                       "pod_cpus", "hint_numa", "device_numa", "comment"};

// An unknown field is most often a typing mistake.
void note_unknown_fields(const Json& object, std::span<const std::string_view> known, const std::string& place,
                         std::vector<std::string>& notes) {
  for (const auto& [name, value] : object.items()) {
    if (std::ranges::find(known, name) == known.end()) {
      notes.push_back("scenario: " + place + "the unknown field " + quote(name) + " is ignored");
    }
  }
}

std::unexpected<Error> refuse(const std::string& place, const std::string& why) {
  return fail(std::errc::invalid_argument, "scenario: " + place + ": " + why);
}

Result<std::string> text_of(const Json& object, const char* name, const std::string& place) {
  const Json* value = value_at(object, name);
  if (value == nullptr || !value->is_string()) {
    return refuse(place, std::string("want a text ") + name);
  }
  return value->get<std::string>();
}

Result<std::vector<cpu::NumaId>> nodes_of(const Json& list, const std::string& place) {
  if (!list.is_array()) {
    return refuse(place, "want a list of NUMA nodes, found " + quote(list.dump()));
  }
  std::vector<cpu::NumaId> nodes;
  for (const Json& node : list) {
    if (!node.is_number_unsigned() || node.get<std::uint64_t>() > cpu::kLastCpu) {
      return refuse(place, "want a list of NUMA nodes, found " + quote(list.dump()));
    }
    nodes.push_back({node.get<std::uint32_t>()});
  }
  return nodes;
}

Result<cpu::CpuAmount> amount_of(const Json& value, const std::string& place) {
  if (!value.is_number() || value.get<double>() < 0 || value.get<double>() > kMostCpusAsked) {
    return refuse(place, "want a number of cpus, found " + quote(value.dump()));
  }
  const auto milli = std::uint64_t(std::llround(value.get<double>() * 1000));
  return cpu::CpuAmount{.request = milli, .limit = milli};
}

Result<cpu::ContainerRole> role_of(const Json& container, const std::string& place) {
  const Json* type = value_at(container, "type");
  const std::string role = type == nullptr ? "app" : type->is_string() ? type->get<std::string>() : type->dump();
  if (role == "app") {
    return cpu::ContainerRole::app;
  }
  if (role == "init") {
    return cpu::ContainerRole::init;
  }
  if (role == "sidecar") {
    return cpu::ContainerRole::sidecar;
  }
  return refuse(place, "type " + quote(role) + " is none of init, sidecar, app");
}

Result<std::vector<cpu::ContainerRequest>> containers_of(const Json& list, const std::string& place) {
  if (!list.is_array()) {
    return refuse(place, "pod_containers: want a list");
  }
  std::vector<cpu::ContainerRequest> containers;
  for (const Json& entry : list) {
    if (!entry.is_object()) {
      return refuse(place, R"(pod_containers: want {"name", "type", "cpus"}, found )" + quote(entry.dump()));
    }
    cpu::ContainerRequest container;
    container.name = TRY(text_of(entry, "name", place));
    container.role = TRY(role_of(entry, place));
    if (const Json* cpus = value_at(entry, "cpus")) {
      container.cpu = TRY(amount_of(*cpus, place));
    }
    if (std::ranges::find(containers, container.name, &cpu::ContainerRequest::name) != containers.end()) {
      return refuse(place, "pod_containers: " + quote(container.name) + " is there twice");
    }
    containers.push_back(std::move(container));
  }
  return containers;
}

class Reader {
 public:
  Result<cpu::ScenarioStep> step_of(const Json& op, const std::string& place) {
    if (!op.is_object()) {
      return refuse(place, "want {\"op\": …}, found " + quote(op.dump()));
    }
    const std::string name = TRY(text_of(op, "op", place));
    cpu::ScenarioStep step;
    step.pod.uid = TRY(text_of(op, "pod", place));
    step.pod.is_guaranteed = true;
    if (name != "allocate_pod") {
      step.container = TRY(text_of(op, "container", place));
    }
    if (name == "remove") {
      step.operation = cpu::Operation::remove;
      return step;
    }
    if (name != "allocate" && name != "allocate_pod") {
      return refuse(place, "op " + quote(name) + " is none of allocate, allocate_pod, remove");
    }
    step.operation = name == "allocate" ? cpu::Operation::allocate : cpu::Operation::allocate_pod;
    TRY(read_pod(op, place, step));
    if (const Json* hint = value_at(op, "hint_numa")) {
      step.preference.hint = TRY(nodes_of(*hint, place + " hint_numa"));
    }
    if (const Json* near = value_at(op, "device_numa")) {
      step.preference.device_nodes = TRY(nodes_of(*near, place + " device_numa"));
    }
    return step;
  }

 private:
  // The containers of a pod are listed once, with its first container, or with every one.
  Result<void> read_pod(const Json& op, const std::string& place, cpu::ScenarioStep& step) {
    const Json* list = value_at(op, "pod_containers");
    const Json* cpus = value_at(op, "cpus");
    if (list != nullptr && cpus != nullptr) {
      return refuse(place, "cpus and pod_containers say the same thing twice");
    }
    std::vector<cpu::ContainerRequest>& pod = pods_[step.pod.uid];
    if (list != nullptr) {
      pod = TRY(containers_of(*list, place));
    } else if (cpus != nullptr) {
      const cpu::CpuAmount amount = TRY(amount_of(*cpus, place));
      std::erase_if(pod, [&](const cpu::ContainerRequest& container) { return container.name == step.container; });
      pod.push_back({step.container, cpu::ContainerRole::app, amount});
    }
    step.pod.containers = pod;
    if (const Json* budget = value_at(op, "pod_cpus")) {
      step.pod.cpu_budget = TRY(amount_of(*budget, place));
    }
    if (step.operation == cpu::Operation::allocate && find_container(step.pod, step.container) == nullptr) {
      return refuse(place, "container " + quote(step.container) + " is not among pod_containers");
    }
    return {};
  }

  std::map<std::string, std::vector<cpu::ContainerRequest>> pods_;
};

Result<void> read_machine(const Json& json, ScenarioFile& file) {
  const Json* machine = value_at(json, "topology");
  if (machine == nullptr) {
    return refuse("topology", "there is none: want a file, synthetic:…, the name of a machine, or {\"cpus\": …}");
  }
  if (machine->is_string()) {
    file.machine_source = machine->get<std::string>();
    const Json* own = value_at(json, "topologies");
    if (own == nullptr || !own->is_object() || !own->contains(file.machine_source)) {
      return file.machine_source.empty() ? refuse("topology", "it is empty") : Result<void>();
    }
    machine = &(*own)[file.machine_source];
    file.machine_source.clear();
  }
  file.scenario.topology = TRY(parse_topology(machine->dump()));
  return {};
}

Result<std::map<std::string, std::string>> parse_option_values(const Json& options) {
  if (!options.is_object()) {
    return refuse("options", "want {\"name\": true, …}");
  }
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : options.items()) {
    if (!value.is_boolean() && !value.is_string()) {
      return refuse("options", quote(name) + " is neither true nor false");
    }
    values[name] = value.is_string() ? value.get<std::string>() : value.get<bool>() ? "true" : "false";
  }
  return values;
}

Result<void> read_reserved(const Json& reserved, cpu::Scenario& scenario) {
  if (reserved == 0) {
    return refuse("reserved", "0 is how many, and none need not be said; CPU 0 is \"0\"");
  }
  if (reserved.is_number_unsigned() && reserved.get<std::uint64_t>() <= cpu::kLastCpu) {
    scenario.reserved_amount = reserved.get<std::uint32_t>();
    return {};
  }
  if (!reserved.is_string()) {
    return refuse("reserved", "want a CPU list such as \"0,4\", or how many");
  }
  scenario.reserved = TRY(cpu::parse_cpu_set(reserved.get<std::string>()));
  return {};
}

Result<void> read_policy(const Json& json, cpu::Scenario& scenario) {
  std::map<std::string, std::string> values;
  if (const Json* options = value_at(json, "options")) {
    values = TRY(parse_option_values(*options));
  }
  scenario.options = TRY(cpu::parse_options(values));
  if (const Json* reserved = value_at(json, "reserved")) {
    TRY(read_reserved(*reserved, scenario));
  }
  if (const Json* budgets = value_at(json, "pod_budgets")) {
    if (!budgets->is_boolean()) {
      return refuse("pod_budgets", "want true or false");
    }
    scenario.budgets = budgets->get<bool>() ? cpu::PodBudgets::honoured : cpu::PodBudgets::ignored;
  }
  if (value_at(json, "policy") == nullptr) {
    return {};
  }
  const std::string policy = TRY(text_of(json, "policy", "policy"));
  if (policy != "static" && policy != "none") {
    return fail(std::errc::invalid_argument, "unknown policy: \"" + policy + "\"");
  }
  if (policy == "none" && !values.empty()) {
    return refuse("options", "the policy none takes no option");
  }
  scenario.kind = policy == "none" ? cpu::PolicyKind::none : cpu::PolicyKind::fixed;
  return {};
}

}  // namespace

Result<ScenarioFile> parse_scenario(std::string_view text) {
  const Result<Json> parsed = document::parse_json<Json>(text, {.depth = 32});
  if (!parsed || !parsed->is_object()) {
    return fail(std::errc::invalid_argument, "scenario: " + (parsed ? "it is no JSON object" : parsed.error().message));
  }
  const Json& json = *parsed;
  ScenarioFile file;
  TRY(read_machine(json, file));
  TRY(read_policy(json, file.scenario));
  const Json* ops = value_at(json, "ops");
  if (ops == nullptr || !ops->is_array()) {
    return refuse("ops", "want a list");
  }
  note_unknown_fields(json, kFields, "", file.notes);
  Reader reader;
  for (std::size_t i = 0; i < ops->size(); ++i) {
    const std::string place = "op " + std::to_string(i + 1);
    file.scenario.steps.push_back(TRY(reader.step_of((*ops)[i], place)));
    note_unknown_fields((*ops)[i], kOpFields, place + ": ", file.notes);
    if (file.scenario.steps.back().operation == cpu::Operation::allocate_pod &&
        file.scenario.budgets == cpu::PodBudgets::ignored) {
      return refuse(place, R"(allocate_pod is for pods with a budget: say "pod_budgets": true)");
    }
  }
  return file;
}

}  // namespace hf::cpu_file
