#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/report/verdict.h"
#include "render/blame.h"
#include "render/cpu.h"
#include "render/plugin.h"
#include "render/rules.h"
#include "render/snapshot.h"
#include "render/time.h"

namespace hf::report {
namespace {

using Json = nlohmann::ordered_json;
using container::Container;

constexpr int kVersion = 1;  // of the schema in docs/JSON.md

using ContainersByNode = std::map<std::string, std::vector<std::string>>;  // ids by path

void put(Json& json, const char* key, const std::string& text) {
  if (!text.empty()) {
    json[key] = text;
  }
}

void put(Json& json, const char* key, const std::optional<std::string>& text) {
  if (text) {
    json[key] = *text;
  }
}

void put(Json& json, const char* key, const std::vector<std::string>& list) {
  if (!list.empty()) {
    json[key] = list;
  }
}

void put_moment(Json& json, const char* key, std::int64_t milliseconds) {
  if (milliseconds != 0) {
    json[key] = render_moment(milliseconds);
  }
}

template <class T>
void put(Json& json, const char* key, const std::optional<T>& value) {
  if (value) {
    json[key] = *value;
  }
}

void put(Json& json, const char* key, const std::optional<device::Device>& device) {
  if (device) {
    json[key] = {{"type", std::string(1, device::kind_character(device->kind))},
                 {"major", device->major},
                 {"minor", device->minor}};
  }
}

template <class List, class ToJson>
Json list_of(const List& list, const ToJson& to_json) {
  Json json = Json::array();
  for (const auto& entry : list) {
    json.push_back(to_json(entry));
  }
  return json;
}

Json json_of_owed(const container::OwedNode& node) {
  Json json = {{"path", node.path}};
  put(json, "class", node.device_class);
  json["part"] = to_string(node.part);
  put(json, "device", node.device);
  if (node.is_stale()) {
    put(json, "claimed", node.claimed);
  }
  json["access"] = to_string(node.access);
  put(json, "because", node.because);
  json["rule_only"] = node.is_rule_only;
  return json;
}

Json json_of_node(const container::NodeState& node) {
  Json json = json_of_owed(*node.owed);
  json["trouble"] = to_string(node.diagnosis.failure);
  json["troubled"] = node.is_inaccessible();
  put(json, "words", node.diagnosis.text);
  return json;
}

Json json_of_pod(const container::Pod& pod) {
  Json json = Json::object();
  put(json, "uid", pod.uid);
  put(json, "name", pod.name);
  put(json, "namespace", pod.name_space);
  put(json, "container", pod.container);
  json["named_by_cri"] = pod.is_named_by_cri;
  return json;
}

Json json_of_container(const Container& it) {
  Json json = {{"id", it.id.value}};
  put(json, "name", it.name);
  json["title"] = title_of(it);
  json["argument"] = argument_of(it);
  put(json, "engine", it.engine);
  put(json, "namespace", it.name_space);
  put(json, "image", it.image);
  if (it.pod) {
    json["pod"] = json_of_pod(*it.pod);
  }
  json["sandbox"] = it.is_sandbox;
  json["pid"] = it.init.value;
  json["started_at"] = render_time(it.started_at);
  put(json, "cgroup", it.cgroup);
  put(json, "systemd_unit", it.unit);
  if (it.runtime) {
    put(json, "runtime", it.runtime->name);
    put(json, "runtime_version", it.runtime->version);
  }
  put(json, "cpus", it.cpus);
  json["cpus_exclusive"] = it.has_exclusive_cpus;
  if (it.inside) {
    json["inside"] = it.inside->value;
  }
  return json;
}

Json json_of_status(const ContainerStatus& guarded) {
  Json json = json_of_container(*guarded.container);
  json["state"] = to_string(guarded.state);
  put(json, "findings", guarded.codes);
  put(json, "mode", guarded.mode);
  json["hardened"] = guarded.is_hardened;
  json["locked"] = guarded.is_locked;
  json["shielded"] = guarded.is_shielded;
  put(json, "why_not_shielded", guarded.why_not_shielded);
  json["held_opens"] = guarded.held_opens;
  json["losses"] = guarded.losses;
  json["heals"] = guarded.heals;
  put_moment(json, "last_loss_at", guarded.last_loss_at);
  json["nodes"] =
      guarded.nodes->empty() ? list_of(guarded.owed->nodes, json_of_owed) : list_of(*guarded.nodes, json_of_node);
  return json;
}

Json json_of_finding(const Finding& finding) {
  Json json = {{"code", finding.code}, {"severity", to_string(finding.severity)}, {"subject", finding.subject}};
  put(json, "container", finding.container);
  json["verdict"] = sentence_of(finding);
  put(json, "evidence", finding.evidence);
  put(json, "cure", finding.cure);
  json["needs_all_cures"] = finding.needs_all_cures;
  return json;
}

Json json_of_verdict(const Verdict& verdict) {
  Json json = {{"level", to_string(verdict.level)}, {"headline", verdict.headline}};
  put(json, "because", verdict.because);
  put(json, "code", verdict.code);
  put(json, "container", verdict.container);
  put(json, "cure", verdict.cure);
  json["needs_all_cures"] = verdict.needs_all_cures;
  put(json, "rest", verdict.rest);
  return json;
}

ContainersByNode containers_by_node(const std::vector<ContainerStatus>& guarded_containers) {
  ContainersByNode ids;
  for (const ContainerStatus& guarded : guarded_containers) {
    for (const container::OwedNode& node : guarded.owed->nodes) {
      ids[node.path].push_back(guarded.container->id.value);
    }
  }
  return ids;
}

// The containers that are owed its first node, or a MIG device of it.
std::vector<std::string> entitled_to(const device::Unit& unit, const ContainersByNode& ids) {
  std::vector<std::string> nodes = unit.nodes.empty() ? std::vector<std::string>() : std::vector{unit.nodes.front()};
  for (const device::MigDevice& part : unit.mig) {
    nodes.insert(nodes.end(), part.nodes.begin(), part.nodes.end());
  }
  std::vector<std::string> entitled;
  for (const std::string& node : nodes) {
    const auto found = ids.find(node);
    if (found != ids.end()) {
      entitled.insert(entitled.end(), found->second.begin(), found->second.end());
    }
  }
  std::ranges::sort(entitled);
  entitled.erase(std::ranges::unique(entitled).begin(), entitled.end());
  return entitled;
}

Json json_of_mig(const device::MigDevice& part) {
  return {{"uuid", part.uuid},
          {"gpu_instance", part.gpu_instance},
          {"compute_instance", part.compute_instance},
          {"nodes", part.nodes}};
}

Json json_of_unit(const device::Unit& unit, const ContainersByNode& ids) {
  Json json = {{"class", unit.device_class}, {"name", unit.name}};
  put(json, "uuid", unit.uuid);
  put(json, "model", unit.model);
  put(json, "pci", unit.pci);
  put(json, "numa", unit.numa);
  put(json, "memory_bytes", unit.memory_bytes);
  json["health"] = to_string(unit.health);
  put(json, "health_words", unit.health_text);
  put(json, "nodes", unit.nodes);
  json["mig_enabled"] = unit.mig_enabled;
  if (!unit.mig.empty()) {
    json["mig"] = list_of(unit.mig, json_of_mig);
  }
  put(json, "containers", entitled_to(unit, ids));
  return json;
}

Json json_of_driver(const device::DriverState& state) {
  Json json = {{"class", state.device_class}};
  put(json, "version", state.version);
  put(json, "library_version", state.library_version);
  put(json, "cuda_version", state.cuda_version);
  put(json, "modules", state.modules);
  put(json, "error", state.library_error);
  put(json, "meaning", state.meaning);
  return json;
}

Json json_of_devices(const Snapshot& snapshot) {
  const ContainersByNode ids = containers_by_node(snapshot.containers);
  Json json = {
      {"units", list_of(snapshot.inventory.units, [&](const device::Unit& unit) { return json_of_unit(unit, ids); })},
      {"drivers", list_of(snapshot.inventory.states, json_of_driver)},
      {"offers", Json::parse(render_json(snapshot.offers))}};
  put(json, "notes", snapshot.inventory.notes);
  return json;
}

Json json_of_tiers(const container::Tiers& tiers) {
  Json json = Json::object();
  if (tiers.has_v1) {
    json["v1"] = to_string(tiers.v1);
  }
  if (tiers.has_v2) {
    json["v2"] = to_string(tiers.v2);
  }
  put(json, "why", tiers.why);
  return json;
}

Json json_of_record(const BlameRecordPtr& record) {
  Json json = Json::parse(render_line(*record));
  json.erase("version");
  return json;
}

Json json_of_histogram(const Histogram& histogram) { return {{"count", histogram.total()}, {"sum_ns", histogram.sum}}; }

Json json_of_counters(const Counters& counters) {
  Json losses = Json::array();
  for (const auto& [key, count] : counters.losses) {
    losses.push_back({{"cause", key.first}, {"writer", key.second}, {"count", count}});
  }
  Json heals = Json::array();
  for (const auto& [key, count] : counters.heals) {
    heals.push_back({{"action", key.first}, {"result", key.second}, {"count", count}});
  }
  return {{"losses", losses},
          {"heals", heals},
          {"events", counters.events},
          {"loss_duration", json_of_histogram(counters.loss_duration)},
          {"heal_duration", json_of_histogram(counters.heal_duration)},
          {"surveys", counters.surveys},
          {"survey_ns", counters.survey_ns}};
}

}  // namespace

// The document is one line: with a thousand containers, indentation would be most of it.
std::string render_json(const Snapshot& snapshot) {
  Json json = {{"version", kVersion}, {"at", render_moment(snapshot.at)}};
  put(json, "program_version", snapshot.version);
  put(json, "kernel", snapshot.kernel);
  put(json, "layout", snapshot.layout);
  put(json, "host_name", snapshot.host_name);
  put_moment(json, "started_at", snapshot.started_at);
  put_moment(json, "surveyed_at", snapshot.surveyed_at);
  json["verdict"] = json_of_verdict(verdict_of(snapshot));
  json["tiers"] = json_of_tiers(snapshot.tiers);
  json["blind"] = snapshot.is_blind;
  put(json, "why_blind", snapshot.why_blind);
  put(json, "online_cpus", snapshot.online_cpus);
  if (snapshot.cpus) {
    json["cpus"] = Json::parse(render_json(*snapshot.cpus));
    json["cpus"].erase("version");
  }
  json["containers"] = list_of(snapshot.containers, json_of_status);
  json["findings"] = list_of(*snapshot.findings, json_of_finding);
  json["devices"] = json_of_devices(snapshot);
  json["records"] = list_of(snapshot.records, json_of_record);
  json["counters"] = json_of_counters(snapshot.counters);
  return json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace hf::report
