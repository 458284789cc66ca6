#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "adapters/cpu_file/scenario_file.h"
#include "adapters/cpu_file/topology_file.h"
#include "commands.h"
#include "core/base/text.h"
#include "core/cpu/machine.h"
#include "core/report/cpu_report.h"
#include "kernel/file.h"
#include "output.h"
#include "services/cpus/machine.h"
#include "services/cpus/state.h"

namespace hf::programs {
namespace {

struct CpuWords {
  std::string machine;
  std::string file;  // a state's, or a scenario's
  std::string policy;
  std::string count;
  std::optional<std::string> free;
  std::string reserved;
  std::optional<std::string> hint;
  std::vector<std::string> options;
  std::vector<std::string> devices;
  bool rebuild = false;
  bool dry_run = false;
  Output output;
};

// Words that cannot be meant are usage; what cannot be given is a problem that was found.
int answer_for(const Error& error) {
  const bool is_refusal = error.code == std::errc::resource_unavailable_try_again;
  const int cannot_tell = complain(error);
  return is_refusal ? kProblem : cannot_tell;
}

Result<cpu::Options> options_of(const CpuWords& words) {
  std::map<std::string, std::string> named;
  for (const std::string& option : words.options) {
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos) {
      return fail(std::errc::invalid_argument, "option " + quote(option) + ": want NAME=true or NAME=false");
    }
    named[option.substr(0, equals)] = option.substr(equals + 1);
  }
  return cpu::parse_options(named);
}

Result<std::uint32_t> count_of(const std::string& word) {
  const std::optional<std::uint32_t> count = parse_number<std::uint32_t>(word);
  if (!count) {
    return fail(std::errc::invalid_argument, "--cpus " + quote(word) + ": want a number of CPUs");
  }
  return *count;
}

Result<std::vector<cpu::NumaId>> nodes_of(const std::string& list, const cpu::Topology& topology) {
  std::vector<cpu::NumaId> nodes;
  const std::vector<cpu::NumaId> known = numa_nodes(topology);
  const Result<cpu::CpuSet> numbers = cpu::parse_cpu_set(list);
  if (!numbers || numbers->empty()) {
    return fail(std::errc::invalid_argument, "hint " + quote(list) + ": want NUMA nodes such as 0,1");
  }
  for (const std::uint32_t node : *numbers) {
    if (std::ranges::find(known, cpu::NumaId{node}) == known.end()) {
      return fail(std::errc::invalid_argument,
                  "hint " + quote(list) + ": the machine has no NUMA node " + std::to_string(node));
    }
    nodes.push_back({node});
  }
  return nodes;
}

Result<cpus::Machine> read_machine(const CpuWords& words) {
  const Progress progress("looking at the machine");
  Result<cpus::Machine> machine = cpus::read_machine(words.machine);
  progress.done();
  return machine;
}

Result<int> show_topology(const CpuWords& words) {
  const cpus::Machine machine = TRY(read_machine(words));
  report::CpuMap map{.source = machine.title, .topology = machine.topology, .state = {}};
  if (!words.file.empty()) {
    map.state = TRY(cpus::read_state(words.file));
  }
  if (words.output.format == "svg") {
    print(render_svg(map));
  } else {
    print(words.output.is_json() ? render_json(map) : render_text(map));
  }
  return kFine;
}

bool says_no_to_devices(const CpuWords& words) {
  return std::ranges::any_of(words.options, [](const std::string& option) {
    constexpr std::string_view kName = "prefer-device-numa=";
    return option.starts_with(kName) && !cpu::parse_truth(option.substr(kName.size())).value_or(true);
  });
}

Result<report::CpuPlan> plan_for(const CpuWords& words) {
  const cpus::Machine machine = TRY(read_machine(words));
  report::CpuPlan plan{.source = machine.title, .requested = TRY(count_of(words.count))};
  plan.topology = machine.topology;
  plan.options = TRY(options_of(words));
  if (!words.devices.empty() && says_no_to_devices(words)) {
    return fail(std::errc::invalid_argument, "--near-device and prefer-device-numa=false contradict each other");
  }
  for (const std::string& device : words.devices) {
    plan.options.near_devices = true;
    plan.wish.device_nodes.push_back(TRY(cpus::seat_of(machine.topology, device)));
  }
  if (words.hint) {
    plan.wish.hint = TRY(nodes_of(*words.hint, machine.topology));
  }
  const cpu::Layout layout(machine.topology);
  const cpu::Policy policy =
      TRY(make_policy(layout, plan.options, TRY(cpu::parse_cpu_set(words.reserved)), std::nullopt));
  plan.reserved = policy.reserved;
  plan.free = words.free ? TRY(cpu::parse_cpu_set(*words.free)) : layout.cpus;
  if (!layout.cpus.contains(plan.free)) {
    return fail(std::errc::invalid_argument, "free CPUs " + to_string(plan.free - layout.cpus) +
                                                 " are not of this machine (" + to_string(layout.cpus) + ")");
  }
  cpu::State state;
  state.shared = plan.free;
  const cpu::PodAsk pod{.uid = "plan",
                        .is_guaranteed = true,
                        .containers = {{"plan", cpu::ContainerRole::app, cpu::whole_cpus(plan.requested)}},
                        .shared_between = {}};
  const auto given = allocate(policy, state, pod, "plan", plan.wish, &plan.story);
  if (!given) {
    plan.error = given.error().message;
    plan.story.clear();
    return plan;
  }
  plan.cpus = given->value_or(cpu::CpuSet());
  return plan;
}

Result<int> show_plan(const CpuWords& words) {
  const report::CpuPlan plan = TRY(plan_for(words));
  print(words.output.is_json() ? render_json(plan) : render_text(plan));
  return plan.error.empty() ? kFine : kProblem;
}

Result<int> show_simulation(const CpuWords& words) {
  cpu_file::ScenarioFile file = TRY(cpu_file::parse_scenario(TRY(kernel::read_regular_file(words.file))));
  if (!file.machine_word.empty()) {
    const std::size_t slash = words.file.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : words.file.substr(0, slash);
    file.scenario.topology = TRY(cpus::read_machine(file.machine_word, folder)).topology;
  }
  const cpu::Simulation simulation = TRY(simulate(file.scenario));
  for (const std::string& note : file.notes) {
    complain({std::errc::invalid_argument, "note: " + note});
  }
  print(words.output.is_json() ? report::render_json(simulation) : report::render_text(simulation));
  const bool is_served =
      std::ranges::all_of(simulation.steps, [](const cpu::StepResult& step) { return step.error.empty(); });
  return is_served ? kFine : kProblem;
}

Result<int> rebuild(const CpuWords& words, const cpu::Policy& policy) {
  const cpu::Rebuilt rebuilt = TRY(cpus::rebuild_state(policy));
  report::CpuStateReport report{.file = words.file, .format = "v2", .policy = "static"};
  report.state = rebuilt.state;
  for (const cpu::Skipped& skipped : rebuilt.shared) {
    report.notes.push_back("in the shared pool: " + skipped.owner.pod + "/" + skipped.owner.container + ": " +
                           skipped.why);
  }
  if (words.dry_run) {
    report.notes.emplace_back("nothing was written");
  } else {
    const cpus::RebuiltFile replaced = TRY(cpus::replace_state(words.file, rebuilt));
    if (!replaced.kept_aside.empty()) {
      report.notes.push_back("the old file is now " + replaced.kept_aside);
    }
  }
  print(words.output.is_json() ? render_json(report) : render_text(report));
  return kFine;
}

Result<int> show_state(const CpuWords& words) {
  const cpus::Machine machine = TRY(read_machine(words));
  const cpu::Layout layout(machine.topology);
  const cpu::Policy policy =
      TRY(make_policy(layout, TRY(options_of(words)), TRY(cpu::parse_cpu_set(words.reserved)), std::nullopt));
  if (words.rebuild && policy.reserved.empty()) {
    return fail(std::errc::invalid_argument, "--rebuild needs --reserved: the CPUs kubelet is told to keep");
  }
  if (words.rebuild) {
    return rebuild(words, policy);
  }
  const report::CpuStateReport report =
      TRY(cpus::check_state(words.file, {.policy = &policy, .policy_name = words.policy}));
  print(words.output.is_json() ? render_json(report) : render_text(report));
  return report.problems.empty() ? kFine : kProblem;
}

using Show = Result<int> (*)(const CpuWords&);

void run(const CpuWords& words, Show show, int& status) {
  const Result<int> shown = show(words);
  status = shown ? *shown : answer_for(shown.error());
}

void add_policy(CLI::App& command, CpuWords& words) {
  command.add_option("--option", words.options, "an option of kubelet's static policy, such as full-pcpus-only=true")
      ->take_all()
      ->type_name("NAME=BOOL");
  command.add_option("--reserved", words.reserved, "CPUs kept for the system, such as 0,64")->type_name("SET");
}

std::string machines_in_words() {
  std::string text;
  for (const cpu::KnownMachine& machine : cpu::known_machines()) {
    text += "  " + machine.name + std::string(16 - std::min<std::size_t>(machine.name.size(), 15), ' ') +
            machine.words + "\n";
  }
  return text;
}

constexpr const char* kMachineWords =
    "a file (JSON, or XML of lstopo), synthetic:…, or a known machine's name; none: this machine";

void add_topology(CLI::App& cpu, int& status) {
  const auto words = std::make_shared<CpuWords>();
  CLI::App* command =
      cpu.add_subcommand("topology", "a map of sockets, NUMA nodes, caches, cores, threads and devices");
  command->add_option("--from,--topology", words->machine, kMachineWords)->type_name("MACHINE");
  command->add_option("--state", words->file, "a cpu_manager_state: who owns which core")->type_name("FILE");
  words->output.format = "table";
  add_output(*command, words->output, {"table", "text", "json", "svg"});
  command->footer("machines:\n" + machines_in_words() +
                  "try:  holdfast cpu topology --from dgx-a100 -o svg > machine.svg\n"
                  "      holdfast cpu topology --from 'synthetic:pack:2 numa:2 l3:1 core:8 pu:2'");
  command->callback([words, &status] { run(*words, show_topology, status); });
}

void add_plan(CLI::App& cpu, int& status) {
  const auto words = std::make_shared<CpuWords>();
  CLI::App* command = cpu.add_subcommand("plan", "which CPUs a container would be given, and why");
  command->add_option("--cpus", words->count, "how many")->required()->type_name("N");
  command->add_option("--free", words->free, "the shared pool it is taken from; none: all CPUs")->type_name("SET");
  command->add_option("--topology,--from", words->machine, kMachineWords)->type_name("MACHINE");
  add_policy(*command, *words);
  command->add_option("--hint", words->hint, "the topology manager's NUMA nodes, such as 0,1")->type_name("NODES");
  command->add_option("--near-device", words->devices, "first the NUMA node of this device, such as /dev/nvidia0")
      ->take_all()
      ->type_name("NODE");
  add_output(*command, words->output);
  command->footer(
      "exit: 0 it can be done; 1 it cannot, with kubelet's words; 2 usage, or it could not be told\n"
      "try:  holdfast cpu plan --cpus 16 --topology dgx-a100 --near-device /dev/nvidia0");
  command->callback([words, &status] { run(*words, show_plan, status); });
}

void add_simulate(CLI::App& cpu, int& status) {
  const auto words = std::make_shared<CpuWords>();
  CLI::App* command = cpu.add_subcommand("simulate", "what a sequence of containers would be given");
  command->add_option("SCENARIO", words->file, "a JSON file; docs/CPU.md says what stands in it")->required();
  add_output(*command, words->output);
  command->footer("exit: 0 everybody was served; 1 somebody was not; 2 usage, or a scenario that makes no sense");
  command->callback([words, &status] { run(*words, show_simulation, status); });
}

void add_state(CLI::App& cpu, int& status) {
  const auto words = std::make_shared<CpuWords>();
  words->file = cpus::kKubeletState;
  CLI::App* command = cpu.add_subcommand("state", "what a cpu_manager_state says, and whether kubelet would take it");
  command->add_option("FILE", words->file, "the file; none: kubelet's own")->capture_default_str();
  command->add_option("--topology,--from", words->machine, kMachineWords)->type_name("MACHINE");
  add_policy(*command, *words);
  command->add_option("--policy", words->policy, "the policy kubelet is told; none: the file's")
      ->check(CLI::IsMember({"none", "static"}));
  command->add_flag("--rebuild", words->rebuild,
                    "write the file anew from the cpusets of the containers that run; the old one is kept beside it");
  command->add_flag("--dry-run", words->dry_run, "with --rebuild: only show it");
  add_output(*command, words->output);
  command->footer("exit: 0 it is sound; 1 it is not; 2 usage, or it could not be read");
  command->callback([words, &status] { run(*words, show_state, status); });
}

}  // namespace

void add_cpu(CLI::App& app, int& status) {
  CLI::App* cpu = app.add_subcommand("cpu", "exclusive cores: the machine, plans, simulations, and kubelet's state");
  cpu->require_subcommand(1);
  add_topology(*cpu, status);
  add_plan(*cpu, status);
  add_simulate(*cpu, status);
  add_state(*cpu, status);
}

}  // namespace hf::programs
