#include "kernel/cpu/topology.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include <hwloc.h>

#include "core/base/text.h"
#include "kernel/files/file.h"
#include "kernel/process/subprocess.h"

namespace hf::kernel {
namespace {

constexpr std::size_t kMostModel = 100;  // bytes

struct Destroy {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Tree = std::unique_ptr<hwloc_topology, Destroy>;

std::unexpected<Error> refuse(const std::string& why) { return fail(std::errc::invalid_argument, "topology: " + why); }

// The installed plugins of hwloc are shared libraries for another hwloc than the one linked into this program.
void disable_plugins() { (void)::setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1); }

Result<Tree> make_tree() {
  disable_plugins();
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) {
    return fail(std::errc::not_enough_memory, "topology: hwloc does not start");
  }
  Tree tree(made);
  (void)hwloc_topology_set_flags(made, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  (void)hwloc_topology_set_cache_types_filter(made, HWLOC_TYPE_FILTER_KEEP_ALL);
  return tree;
}

std::uint32_t id_of(hwloc_obj_t object) {
  return object->os_index == HWLOC_UNKNOWN_INDEX ? object->logical_index : object->os_index;
}

// The cache that is shared by the most CPUs. Without one, the caller takes the socket instead.
hwloc_obj_t last_cache_above(hwloc_obj_t cpu) {
  hwloc_obj_t found = nullptr;
  for (hwloc_obj_t above = cpu->parent; above != nullptr; above = above->parent) {
    if (hwloc_obj_type_is_dcache(above->type) != 0) {
      found = above;
    }
  }
  return found;
}

std::optional<std::uint32_t> ancestor_id(hwloc_topology_t tree, hwloc_obj_t cpu, hwloc_obj_type_t type) {
  hwloc_obj* const found = hwloc_get_ancestor_obj_by_type(tree, type, cpu);
  return found == nullptr ? std::nullopt : std::optional(id_of(found));
}

cpu::Cpu row_of(hwloc_topology_t tree, hwloc_obj_t cpu) {
  cpu::Cpu row;
  row.id = id_of(cpu);
  hwloc_obj* const core = hwloc_get_ancestor_obj_by_type(tree, HWLOC_OBJ_CORE, cpu);
  row.core = core == nullptr ? row.id : std::uint32_t(hwloc_bitmap_first(core->cpuset));
  row.socket = ancestor_id(tree, cpu, HWLOC_OBJ_PACKAGE).value_or(0);
  row.numa = {std::uint32_t(std::max(0, hwloc_bitmap_first(cpu->nodeset)))};
  hwloc_obj* const cache = last_cache_above(cpu);
  row.cache = cache == nullptr || cache->type == HWLOC_OBJ_L1CACHE ? row.socket : id_of(cache);
  return row;
}

void read_distances(hwloc_topology_t tree, cpu::Topology& topology) {
  unsigned count = 1;
  hwloc_distances_s* found = nullptr;
  if (hwloc_distances_get_by_type(tree, HWLOC_OBJ_NUMANODE, &count, &found, HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) !=
          0 ||
      count == 0) {
    return;
  }
  for (unsigned from = 0; from < found->nbobjs; ++from) {
    for (unsigned to = 0; to < found->nbobjs; ++to) {
      topology.distances.push_back({.from = {id_of(found->objs[from])},
                                    .to = {id_of(found->objs[to])},
                                    .value = std::uint32_t(found->values[from * found->nbobjs + to])});
    }
  }
  hwloc_distances_release(tree, found);
}

void read_memory(hwloc_topology_t tree, cpu::Topology& topology) {
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(tree, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    if (node->attr->numanode.local_memory > 0) {
      topology.memory.push_back({.node = {id_of(node)}, .bytes = node->attr->numanode.local_memory});
    }
  }
}

// Of the first socket: servers have the same in all of them.
std::string read_model(hwloc_topology_t tree) {
  hwloc_obj_t package = hwloc_get_obj_by_type(tree, HWLOC_OBJ_PACKAGE, 0);
  const char* model = package == nullptr ? nullptr : hwloc_obj_get_info_by_name(package, "CPUModel");
  return model == nullptr ? std::string() : cut_to(printable(trim(model)), kMostModel);
}

// The efficient cores of a hybrid machine: hwloc numbers the kinds of cores from the most efficient one on.
cpu::CpuSet read_efficient(hwloc_topology_t tree) {
  cpu::CpuSet efficient;
  if (hwloc_cpukinds_get_nr(tree, 0) < 2) {
    return efficient;
  }
  const std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)> set(hwloc_bitmap_alloc(), hwloc_bitmap_free);
  int efficiency = -1;
  if (hwloc_cpukinds_get_info(tree, 0, set.get(), &efficiency, nullptr, nullptr, 0) != 0 || efficiency < 0) {
    return efficient;
  }
  for (int cpu = hwloc_bitmap_first(set.get()); cpu >= 0 && std::uint32_t(cpu) <= cpu::kLastCpu;
       cpu = hwloc_bitmap_next(set.get(), cpu)) {
    efficient.add(std::uint32_t(cpu));
  }
  return efficient;
}

// Counts the CPUs of a synthetic description beforehand, because hwloc would build any number of them, for hours.
// Returns 0 where a count cannot be parsed.
std::uint64_t cpus_in(std::string_view description) {
  std::uint64_t cpus = 1;
  for (std::string_view field : split_fields(description)) {
    field = field.substr(0, field.find('('));  // "numa:2(memory=1GB)"
    const std::size_t colon = field.find(':');
    if (field.starts_with('[') || (colon == std::string_view::npos && !parse_number<std::uint32_t>(field))) {
      continue;  // "[numa]", or invalid text that hwloc refuses
    }
    const std::string_view count = colon == std::string_view::npos ? field : field.substr(colon + 1);
    cpus *= std::min(parse_number<std::uint32_t>(count).value_or(0), cpu::kMostCpus + 1);
    if (cpus == 0 || cpus > cpu::kMostCpus) {
      return cpus;
    }
  }
  return cpus;
}

Result<cpu::Topology> read_tree(const Tree& tree) {
  std::vector<cpu::Cpu> rows;
  hwloc_obj_t cpu = nullptr;
  while ((cpu = hwloc_get_next_obj_by_type(tree.get(), HWLOC_OBJ_PU, cpu)) != nullptr) {
    rows.push_back(row_of(tree.get(), cpu));
  }
  cpu::Topology topology = TRY(cpu::make_topology(std::move(rows)));
  read_distances(tree.get(), topology);
  read_memory(tree.get(), topology);
  topology.model = read_model(tree.get());
  topology.efficient = read_efficient(tree.get());
  return topology;
}

// Descriptions are untrusted, and some of them crash hwloc. A child process reads them and reports each row as a line
// of text.
constexpr std::chrono::seconds kReadTimeout(60);
constexpr std::size_t kMostDistances = 128UL * 128;  // of 128 NUMA nodes; the output of a child is limited

std::string to_lines(const cpu::Topology& topology) {
  std::string text;
  for (const cpu::Cpu& cpu : topology.cpus) {
    for (const std::uint32_t number : {cpu.id, cpu.core, cpu.socket, cpu.numa.value, cpu.cache}) {
      text += std::to_string(number);
      text += ' ';
    }
    text += '\n';
  }
  for (const cpu::Distance& distance : topology.distances) {
    for (const std::uint32_t number : {distance.from.value, distance.to.value, distance.value}) {
      text += topology.distances.size() > kMostDistances ? "" : std::to_string(number) + " ";
    }
    text += '\n';
  }
  for (const cpu::NodeMemory& memory : topology.memory) {
    text += "memory " + std::to_string(memory.node.value) + " " + std::to_string(memory.bytes) + " bytes\n";
  }
  text += topology.model.empty() ? "" : "model " + topology.model + "\n";
  return text + "efficient " + to_string(topology.efficient) + "\nend\n";
}

Result<cpu::Topology> parse_lines(std::string_view text) {
  std::vector<cpu::Cpu> rows;
  cpu::Topology rest;
  constexpr std::string_view kModel = "model ";
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with(kModel)) {
      rest.model = line.substr(kModel.size());
      continue;
    }
    const std::vector<std::string_view> fields = split_fields(line);
    std::vector<std::uint32_t> numbers;
    numbers.reserve(fields.size());
    for (const std::string_view field : fields) {
      numbers.push_back(parse_number<std::uint32_t>(field).value_or(0));
    }
    if (fields.size() == 4) {
      rest.memory.push_back({.node = {numbers[1]}, .bytes = parse_number<std::uint64_t>(fields[2]).value_or(0)});
    } else if (fields.size() == 5) {
      rows.push_back({numbers[0], numbers[1], numbers[2], {numbers[3]}, numbers[4]});
    } else if (fields.size() == 3) {
      rest.distances.push_back({{numbers[0]}, {numbers[1]}, numbers[2]});
    } else if (fields.size() == 2) {
      rest.efficient = TRY(cpu::parse_cpu_set(fields[1]));
    }
  }
  cpu::Topology topology = TRY(cpu::make_topology(std::move(rows)));
  topology.distances = std::move(rest.distances);
  topology.efficient = rest.efficient;
  topology.memory = std::move(rest.memory);
  topology.model = std::move(rest.model);
  return topology;
}

// On failure the error is the message that the child writes instead of rows, or a default message where it writes none.
Result<cpu::Topology> read_in_child(const std::function<Result<cpu::Topology>()>& read, const std::string& what) {
  const Result<std::string> text = run_in_subprocess(
      [&] {
        const Result<cpu::Topology> topology = read();
        return topology ? to_lines(*topology) : topology.error().message;
      },
      kReadTimeout);
  if (!text && text.error().code == std::errc::timed_out) {
    return refuse(what + " takes longer than a minute to read");
  }
  if (text && text->ends_with("end\n")) {
    return parse_lines(*text);
  }
  return text && text->starts_with("topology: ") ? fail(std::errc::invalid_argument, *text)
                                                 : refuse(what + " is none that hwloc can read");
}

cpu::CpuSet read_set(const Host& host, const std::string& name) {
  const Result<std::string> text = read_text(host.root.get(), "sys/devices/system/cpu/" + name);
  return text ? cpu::parse_cpu_set(*text).value_or(cpu::CpuSet()) : cpu::CpuSet();
}

}  // namespace

Result<cpu::Topology> read_topology(const Host& host) {
  const Tree tree = TRY(make_tree());
  if (hwloc_topology_load(tree.get()) != 0) {
    return fail_errno(errno, "topology: hwloc cannot read this machine");
  }
  cpu::Topology topology = TRY(read_tree(tree));
  topology.offline = read_set(host, "offline") & (read_set(host, "present") - cpu::all_cpus(topology));
  topology.isolated = read_set(host, "isolated");
  return topology;
}

Result<cpu::Topology> read_hwloc_xml(const std::string& text) {
  return read_in_child(
      [&]() -> Result<cpu::Topology> {
        const Tree tree = TRY(make_tree());
        if (hwloc_topology_set_xmlbuffer(tree.get(), text.c_str(), int(text.size() + 1)) != 0 ||
            hwloc_topology_load(tree.get()) != 0) {
          return refuse("it is no XML of hwloc's");
        }
        return read_tree(tree);
      },
      "this XML");
}

Result<cpu::Topology> read_synthetic(const std::string& description) {
  const std::uint64_t cpus = cpus_in(description);
  if (cpus == 0 || cpus > cpu::kMostCpus) {
    return refuse(
        "synthetic " + quote(description) +
        (cpus == 0 ? " has a count that is none" : " has more than " + std::to_string(cpu::kMostCpus) + " CPUs"));
  }
  return read_in_child(
      [&]() -> Result<cpu::Topology> {
        const Tree tree = TRY(make_tree());
        if (hwloc_topology_set_synthetic(tree.get(), description.c_str()) != 0 ||
            hwloc_topology_load(tree.get()) != 0) {
          return refuse("synthetic " + quote(description) +
                        " is none of hwloc's descriptions; one is \"pack:2 numa:2 l3:1 core:8 pu:2\"");
        }
        return read_tree(tree);
      },
      "synthetic " + quote(description));
}

}  // namespace hf::kernel
