#include "adapters/cpu_file/topology_file.h"

#include <array>
#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "core/base/text.h"

namespace hf::cpu_file {
namespace {

using Json = document::OrderedJson;

constexpr std::uint64_t kMostId = 1'000'000;
constexpr std::size_t kMostModel = 100;  // bytes

struct Counter {
  const char* name;
  std::uint32_t cpu::Counters::* field;
};

constexpr std::array kCounters = {
    Counter{"num_cpus", &cpu::Counters::cpus},           Counter{"num_cores", &cpu::Counters::cores},
    Counter{"num_sockets", &cpu::Counters::sockets},     Counter{"num_numa_nodes", &cpu::Counters::numa_nodes},
    Counter{"num_uncore_cache", &cpu::Counters::caches},
};

struct SetField {
  const char* name;
  cpu::CpuSet cpu::Topology::* field;
};

constexpr std::array kSets = {
    SetField{"offline", &cpu::Topology::offline},
    SetField{"isolated", &cpu::Topology::isolated},
    SetField{"efficient", &cpu::Topology::efficient},
};

std::unexpected<Error> refuse(const std::string& why) { return fail(std::errc::invalid_argument, "topology: " + why); }

Result<std::uint32_t> number_of(const Json& json, const std::string& place) {
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() > kMostId) {
    return refuse(place + ": want a number from 0 to " + std::to_string(kMostId) + ", found " + quote(json.dump()));
  }
  return json.get<std::uint32_t>();
}

Result<cpu::Cpu> row_of(const Json& row, std::size_t at) {
  const std::string place = "row " + std::to_string(at + 1) + " of cpus";
  if (!row.is_array() || row.size() != 5) {
    return refuse(place + ": want [cpu, core, socket, numa, cache], found " + quote(row.dump()));
  }
  cpu::Cpu cpu;
  cpu.id = TRY(number_of(row[0], place));
  cpu.core = TRY(number_of(row[1], place));
  cpu.socket = TRY(number_of(row[2], place));
  cpu.numa.value = TRY(number_of(row[3], place));
  cpu.cache = TRY(number_of(row[4], place));
  return cpu;
}

Result<void> read_counters(const Json& json, cpu::Counters& counters) {
  for (const Counter& counter : kCounters) {
    if (json.contains(counter.name) && !json[counter.name].is_null()) {
      counters.*counter.field = TRY(number_of(json[counter.name], counter.name));
    }
  }
  return {};
}

Result<void> read_sets(const Json& json, cpu::Topology& topology) {
  for (const SetField& set : kSets) {
    if (!json.contains(set.name)) {
      continue;
    }
    if (!json[set.name].is_string()) {
      return refuse(std::string(set.name) + ": want a CPU list such as \"0-3\"");
    }
    topology.*set.field = TRY(cpu::parse_cpu_set(json[set.name].get<std::string>()));
  }
  return {};
}

// A list that is missing has no elements.
Result<Json::array_t> rows_at(const Json& json, const char* name, const char* wanted) {
  if (!json.contains(name)) {
    return Json::array_t();
  }
  if (!json[name].is_array()) {
    return refuse(std::string(name) + ": want " + wanted);
  }
  return json[name].get_ref<const Json::array_t&>();
}

Result<void> read_distances(const Json& json, cpu::Topology& topology) {
  for (const Json& row : TRY(rows_at(json, "distances", "[[from, to, value], …]"))) {
    if (!row.is_array() || row.size() != 3) {
      return refuse("distances: want [from, to, value], found " + quote(row.dump()));
    }
    cpu::Distance& distance = topology.distances.emplace_back();
    distance.from.value = TRY(number_of(row[0], "distances"));
    distance.to.value = TRY(number_of(row[1], "distances"));
    distance.value = TRY(number_of(row[2], "distances"));
  }
  return {};
}

Result<void> read_memory(const Json& json, cpu::Topology& topology) {
  for (const Json& row : TRY(rows_at(json, "memory", "[[node, bytes], …]"))) {
    if (!row.is_array() || row.size() != 2 || !row[1].is_number_unsigned()) {
      return refuse("memory: want [node, bytes], found " + quote(row.dump()));
    }
    const std::uint32_t node = TRY(number_of(row[0], "memory"));
    topology.memory.push_back({.node = {node}, .bytes = row[1].get<std::uint64_t>()});
  }
  if (json.contains("model") && json["model"].is_string()) {
    topology.model = cut_to(printable(json["model"].get<std::string>()), kMostModel);
  }
  return {};
}

Result<void> read_devices(const Json& json, cpu::Topology& topology) {
  for (const Json& device : TRY(rows_at(json, "devices", R"([{"name": …, "numa": …}, …])"))) {
    if (!device.is_object() || !device.contains("name") || !device["name"].is_string()) {
      return refuse("devices: want {\"name\": …, \"numa\": …}, found " + quote(device.dump()));
    }
    cpu::DeviceLocation located{.name = device["name"].get<std::string>(), .numa = {}};
    if (device.contains("numa") && !device["numa"].is_null()) {
      located.numa = cpu::NumaId{TRY(number_of(device["numa"], "devices"))};
    }
    topology.devices.push_back(std::move(located));
  }
  return {};
}

// A CPU that was left out by mistake would be excluded from every plan.
Result<void> check_gaps(const Json& json, const cpu::Topology& topology) {
  const cpu::CpuSet online = cpu::all_cpus(topology);
  const bool counts_rows = json.contains("num_cpus") && topology.counters.cpus == std::uint32_t(topology.cpus.size());
  for (std::uint32_t cpu = 0; cpu < topology.cpus.back().id; ++cpu) {
    if (!online.contains(cpu) && !topology.offline.contains(cpu) && !counts_rows) {
      return refuse("CPU " + std::to_string(cpu) +
                    R"( is missing between others: if it is offline, say so ("offline": ")" + std::to_string(cpu) +
                    "\")");
    }
  }
  if (online.overlaps(topology.offline)) {
    return refuse("CPU " + std::to_string(*(online & topology.offline).begin()) + " is among cpus and among offline");
  }
  return {};
}

}  // namespace

Result<cpu::Topology> parse_topology(std::string_view text) {
  const Result<Json> parsed = document::parse_json<Json>(text, {.depth = 16});
  if (!parsed || !parsed->is_object()) {
    return refuse(parsed ? "it is no JSON object" : parsed.error().message);
  }
  const Json& json = *parsed;
  if (!json.contains("cpus") || !json["cpus"].is_array()) {
    return refuse("it has no list cpus");
  }
  std::vector<cpu::Cpu> rows;
  rows.reserve(json["cpus"].size());
  for (std::size_t at = 0; at < json["cpus"].size(); ++at) {
    rows.push_back(TRY(row_of(json["cpus"][at], at)));
  }
  cpu::Topology topology = TRY(cpu::make_topology(std::move(rows)));
  TRY(read_counters(json, topology.counters));
  TRY(read_sets(json, topology));
  TRY(read_distances(json, topology));
  TRY(read_devices(json, topology));
  TRY(read_memory(json, topology));
  TRY(check_gaps(json, topology));
  return topology;
}

}  // namespace hf::cpu_file
