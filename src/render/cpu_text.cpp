#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "render/cpu.h"
#include "render/text_table.h"

namespace hf::report {
namespace {

constexpr std::size_t kCoresPerLine = 8;

std::string title_of(const cpu::Owner& owner) { return on_one_line(owner.pod + "/" + owner.container); }

// Owners as letters: a to z, then A to Z, then all the others alike.
class Letters {
 public:
  explicit Letters(const std::optional<cpu::State>& state) {
    if (!state) {
      return;
    }
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (const auto& [owner, cpus] : state->entries) {
      const char letter = legend_.size() < kLetters.size() ? kLetters[legend_.size()] : '*';
      legend_.push_back({letter, title_of(owner), cpus});
    }
  }

  // The owners of one CPU: "" where it is in the shared pool.
  [[nodiscard]] std::string of(std::uint32_t cpu) const {
    std::string letters;
    for (const Entry& entry : legend_) {
      if (entry.cpus.contains(cpu)) {
        letters += entry.letter;
      }
    }
    return letters;
  }

  [[nodiscard]] std::string legend() const {
    std::string text;
    for (const Entry& entry : legend_) {
      text += std::string(1, entry.letter) + " = " + entry.title + ": " + or_dash(to_string(entry.cpus)) + "\n";
    }
    return text;
  }

 private:
  struct Entry {
    char letter;
    std::string title;
    cpu::CpuSet cpus;
  };
  std::vector<Entry> legend_;
};

// The cores of one cache: "0+128" is a core with two threads, "0a+128a" one that has an owner.
std::vector<std::string> cores_in(const CpuMap& map, const Letters& letters, const cpu::Cpu& like) {
  std::map<std::uint32_t, std::string> cores;
  for (const cpu::Cpu& cpu : map.topology.cpus) {
    if (cpu.cache == like.cache && cpu.numa == like.numa && cpu.socket == like.socket) {
      std::string& core = cores[cpu.core];
      core += core.empty() ? "" : "+";
      core += std::to_string(cpu.id);
      const std::string owners = letters.of(cpu.id);
      core += owners.empty() ? "" : marked(kYellow, owners);
    }
  }
  std::vector<std::string> texts;
  texts.reserve(cores.size());
  for (const auto& [core, text] : cores) {
    texts.push_back(text);
  }
  return texts;
}

std::string devices_on(const cpu::Topology& topology, cpu::NumaId node) {
  std::string text;
  for (const cpu::DeviceLocation& device : topology.devices) {
    if (device.numa == node) {
      text += (text.empty() ? "" : " ") + on_one_line(device.name);
    }
  }
  return text;
}

std::string distances_from(const cpu::Topology& topology, cpu::NumaId node) {
  if (topology.distances.empty()) {
    return "";
  }
  std::string text;
  for (const cpu::NumaId other : numa_nodes(topology)) {
    text += " " + std::to_string(distance(topology, node, other));
  }
  return ", distances" + text;
}

std::string lines_of_cores(const CpuMap& map, const Letters& letters, const cpu::Cpu& like) {
  const std::vector<std::string> cores = cores_in(map, letters, like);
  std::string text;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    if (i % kCoresPerLine == 0) {
      const std::string name = i == 0 ? "cache " + std::to_string(like.cache) : "";
      text += (i == 0 ? "" : "\n") + ("    " + name + std::string(12 - std::min<std::size_t>(name.size(), 12), ' '));
    }
    text += " " + cores[i];
  }
  return text + "\n";
}

cpu::CpuSet cpus_of_socket(const cpu::Topology& topology, std::uint32_t socket) {
  cpu::CpuSet cpus;
  for (const cpu::Cpu& cpu : topology.cpus) {
    if (cpu.socket == socket) {
      cpus.add(cpu.id);
    }
  }
  return cpus;
}

std::string summary_of(const cpu::Topology& topology) {
  const cpu::Counters counters = cpu::count(topology.cpus);
  return count_of(counters.sockets, "socket") + ", " + count_of(counters.numa_nodes, "NUMA node") + ", " +
         count_of(counters.caches, "last-level cache") + ", " + count_of(counters.cores, "core") + ", " +
         count_of(counters.cpus, "CPU");
}

std::string in_gibibytes(std::uint64_t bytes) {
  constexpr std::uint64_t kGibibyte = std::uint64_t(1) << 30U;
  return bytes < kGibibyte ? std::to_string(bytes >> 20U) + " MiB"
                           : std::to_string((bytes + kGibibyte / 2) / kGibibyte) + " GiB";
}

void add_set(std::string& text, const std::string& label, const cpu::CpuSet& set) {
  if (!set.empty()) {
    text += label + ": " + to_string(set) + "\n";
  }
}

std::string list_of(const std::vector<cpu::NumaId>& nodes) {
  std::string text;
  for (const cpu::NumaId node : nodes) {
    text += (text.empty() ? "" : ",") + std::to_string(node.value);
  }
  return text;
}

std::string options_of(const cpu::Options& options) {
  std::string text;
  for (const auto& [name, is_set] : option_values(options)) {
    if (is_set) {
      text += (text.empty() ? "" : ", ") + name;
    }
  }
  return text;
}

}  // namespace

std::string memory_text(const cpu::Topology& topology, cpu::NumaId node) {
  const auto found = std::ranges::find(topology.memory, node, &cpu::NodeMemory::node);
  return found == topology.memory.end() ? "" : " · " + in_gibibytes(found->bytes);
}

std::string described(const cpu::Topology& topology) {
  std::string text;
  if (!topology.model.empty()) {
    const std::uint32_t sockets = cpu::count(topology.cpus).sockets;
    text += " · " + (sockets > 1 ? std::to_string(sockets) + " × " : "") + on_one_line(topology.model);
  }
  std::uint64_t bytes = 0;
  for (const cpu::NodeMemory& memory : topology.memory) {
    bytes += memory.bytes;
  }
  return bytes == 0 ? text : text + " · " + in_gibibytes(bytes);
}

std::string render_text(const CpuMap& map) {
  const Letters letters(map.state);
  std::string text =
      marked(kBold, summary_of(map.topology)) + " (" + on_one_line(map.source) + described(map.topology) + ")\n";
  std::vector<cpu::Cpu> rows = map.topology.cpus;
  std::ranges::sort(rows, {}, [](const cpu::Cpu& cpu) { return std::tuple(cpu.socket, cpu.numa, cpu.cache, cpu.id); });
  const cpu::Cpu* before = nullptr;
  for (const cpu::Cpu& cpu : rows) {
    const bool is_new_socket = before == nullptr || before->socket != cpu.socket;
    const bool is_new_node = is_new_socket || before->numa != cpu.numa;
    const bool is_new_cache = is_new_node || before->cache != cpu.cache;
    if (is_new_socket) {
      text += "socket " + std::to_string(cpu.socket) + "\n";
    }
    if (is_new_node) {
      const std::string devices = devices_on(map.topology, cpu.numa);
      text += "  NUMA node " + std::to_string(cpu.numa.value) + ": CPUs " +
              to_string(cpus_of(map.topology, cpu.numa) & cpus_of_socket(map.topology, cpu.socket)) +
              memory_text(map.topology, cpu.numa) + distances_from(map.topology, cpu.numa) +
              (devices.empty() ? "" : ", devices " + devices) + "\n";
    }
    if (is_new_cache) {
      text += lines_of_cores(map, letters, cpu);
    }
    before = &cpu;
  }
  add_set(text, "offline", map.topology.offline);
  add_set(text, "isolated", map.topology.isolated);
  add_set(text, "efficient cores", map.topology.efficient);
  for (const cpu::DeviceLocation& device : map.topology.devices) {
    text += device.numa ? "" : "on no known NUMA node: " + on_one_line(device.name) + "\n";
  }
  if (map.state) {
    text += letters.legend();
    text += "shared by all others: " + or_dash(to_string(map.state->shared)) + "\n";
    const cpu::CpuSet known = map.state->shared | given_cpus(*map.state);
    add_set(text, marked(kYellow, "in the state, but not of this machine"), known - all_cpus(map.topology));
  }
  return text;
}

std::string render_text(const CpuPlan& plan) {
  std::string text;
  if (plan.error.empty()) {
    text = marked(kGreen, or_dash(to_string(plan.cpus))) + "\n";
  } else {
    text = marked(kRed, "cannot be done: ") + plan.error + "\n";
  }
  text +=
      count_of(plan.requested, "CPU") + " of " + on_one_line(plan.source) + ", free " + or_dash(to_string(plan.free));
  text += plan.reserved.empty() ? "" : ", reserved " + to_string(plan.reserved);
  text += plan.preference.hint ? ", hint NUMA node " + or_dash(list_of(*plan.preference.hint)) : "";
  text += plan.preference.device_nodes.empty() ? "" : ", devices on NUMA node " + list_of(plan.preference.device_nodes);
  const std::string options = options_of(plan.options);
  text += options.empty() ? "\n" : ", " + options + "\n";
  for (std::size_t i = 0; plan.error.empty() && i < plan.explanation.size(); ++i) {
    text += "  " + std::to_string(i + 1) + ". " + plan.explanation[i].because + ": " +
            to_string(plan.explanation[i].cpus) + "\n";
  }
  return text;
}

std::string render_text(const cpu::Simulation& simulation, std::size_t columns) {
  TextTable table({"OP", "POD", "CONTAINER", "CPUS", "SHARED AFTER", "ERROR"}, columns);
  std::size_t errors = 0;
  for (const cpu::StepResult& result : simulation.steps) {
    errors += result.error.empty() ? 0 : 1;
    table.add({to_string(result.step.operation), on_one_line(result.step.pod.uid),
               or_dash(on_one_line(result.step.container)), or_dash(to_string(result.cpus)),
               or_dash(to_string(result.shared_after)), or_dash(result.error)});
  }
  const std::string verdict = errors == 0 ? marked(kGreen, "every request was served")
                                          : marked(kYellow, count_of(errors, "request") + " could not be served");
  return verdict + " (" + count_of(simulation.steps.size(), "step") + ", reserved " +
         or_dash(to_string(simulation.reserved)) + ")\n" + table.render();
}

std::string render_text(const CpuStateReport& report, std::size_t columns) {
  std::string text;
  if (report.problems.empty()) {
    text = marked(kGreen, "this state is sound") + " (" + on_one_line(report.file) + ", format " + report.format +
           ", policy " + on_one_line(report.policy) + ")\n";
  } else {
    text = marked(kRed, "this state is not sound") + " (" + on_one_line(report.file) + ")\n";
  }
  for (const CpuStateReport::Problem& problem : report.problems) {
    text += "  " + on_one_line(problem.what) + "\n";
    text += problem.kubelet_says.empty() ? "    kubelet does not notice\n"
                                         : "    kubelet: " + on_one_line(problem.kubelet_says) + "\n";
  }
  for (const std::string& command : report.cure) {
    text += "  try: " + command + "\n";
  }
  if (!report.format.empty()) {
    TextTable table({"POD", "CONTAINER", "CPUS"}, columns);
    for (const auto& [owner, cpus] : report.state.entries) {
      table.add({on_one_line(owner.pod), on_one_line(owner.container), or_dash(to_string(cpus))});
    }
    for (const auto& [id, cpus] : report.unnamed) {
      table.add({"?", on_one_line(id), or_dash(to_string(cpus))});
    }
    for (const auto& [pod, cpus] : report.state.pods) {
      table.add({on_one_line(pod), "(all of it)", to_string(cpus)});
    }
    table.add({"(shared)", "", or_dash(to_string(report.state.shared))});
    text += table.render();
  }
  for (const std::string& note : report.notes) {
    text += "note: " + on_one_line(note) + "\n";
  }
  return text;
}

}  // namespace hf::report
