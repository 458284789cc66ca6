#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "adapters/config/config.h"
#include "adapters/cpu_file/scenario_file.h"
#include "adapters/cpu_file/topology_file.h"
#include "commands.h"
#include "core/base/text.h"
#include "core/cpu/machine.h"
#include "core/report/cpu_report.h"
#include "cpu_option.h"
#include "kernel/files/file.h"
#include "kernel/files/host.h"
#include "kernel/process/process.h"
#include "programs/console/output.h"
#include "render/cpu.h"
#include "services/cpus/machine.h"
#include "services/cpus/manager.h"
#include "services/cpus/state.h"

namespace hf::programs {
namespace {

struct CpuOptions {
  std::string machine;
  std::string file;  // a state file or a scenario
  std::string policy;
  std::string count;
  std::optional<std::string> free;
  std::string reserved;
  std::optional<std::string> hint;
  std::vector<std::string> policy_options;
  std::vector<std::string> devices;
  bool rebuild = false;
  bool force = false;
  bool dry_run = false;
  Output output;
};

// Invalid arguments are usage errors; CPUs that cannot be allocated are a problem that was found.
int status_for(const Error& error) {
  const bool is_refusal = error.reason == Reason::unavailable;
  const int status = complain(error);
  return is_refusal ? kProblem : status;
}

Result<cpu::Options> options_of(const CpuOptions& options) {
  std::map<std::string, std::string> named;
  for (const std::string& option : options.policy_options) {
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos) {
      return fail(std::errc::invalid_argument, "option " + quote(option) + ": want NAME=true or NAME=false");
    }
    named[option.substr(0, equals)] = option.substr(equals + 1);
  }
  TRY(check_option_names(options.policy_options));
  return cpu::parse_options(named);
}

Result<std::uint32_t> count_of(const std::string& text) {
  const std::optional<std::uint32_t> count = parse_number<std::uint32_t>(text);
  if (!count) {
    return fail(std::errc::invalid_argument, "--cpus " + quote(text) + ": want a number of CPUs");
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

Result<cpus::Machine> read_machine(const CpuOptions& options) {
  const Progress progress("reading the topology");
  Result<cpus::Machine> machine = cpus::read_machine(options.machine);
  progress.done();
  return machine;
}

Result<int> show_topology(const CpuOptions& options) {
  const cpus::Machine machine = TRY(read_machine(options));
  report::CpuMap map{.source = machine.title, .topology = machine.topology, .state = {}};
  if (!options.file.empty()) {
    map.state = TRY(cpus::read_state(options.file));
  }
  if (options.output.format == "svg") {
    if (map.state && options.machine.empty()) {  // of another machine, no pod runs here
      map.pod_names = cpus::read_pod_names().value_or(std::map<std::string, std::string>());
    }
    print(render_svg(map));
  } else {
    print(options.output.is_text() ? render_text(map) : in_format(options.output, render_json(map)));
  }
  return kFine;
}

bool disables_device_numa(const CpuOptions& options) {
  return std::ranges::any_of(options.policy_options, [](const std::string& option) {
    constexpr std::string_view kName = "prefer-device-numa=";
    return option.starts_with(kName) && !cpu::parse_bool(option.substr(kName.size())).value_or(true);
  });
}

Result<report::CpuPlan> plan_for(const CpuOptions& options) {
  const cpus::Machine machine = TRY(read_machine(options));
  report::CpuPlan plan;
  plan.source = machine.title;
  plan.requested = TRY(count_of(options.count));
  plan.topology = machine.topology;
  plan.options = TRY(options_of(options));
  if (!options.devices.empty() && disables_device_numa(options)) {
    return fail(std::errc::invalid_argument, "--near-device and prefer-device-numa=false contradict each other");
  }
  for (const std::string& device : options.devices) {
    plan.options.near_devices = true;
    plan.preference.device_nodes.push_back(TRY(cpus::numa_node_of(machine.topology, device)));
  }
  if (options.hint) {
    plan.preference.hint = TRY(nodes_of(*options.hint, machine.topology));
  }
  const cpu::Layout layout(machine.topology);
  const cpu::Policy policy =
      TRY(make_policy(layout, plan.options, TRY(cpu::parse_cpu_set(options.reserved)), std::nullopt));
  plan.reserved = policy.reserved;
  plan.free = options.free ? TRY(cpu::parse_cpu_set(*options.free)) : layout.cpus;
  if (!layout.cpus.contains(plan.free)) {
    return fail(std::errc::invalid_argument, "free CPUs " + to_string(plan.free - layout.cpus) +
                                                 " are not of this machine (" + to_string(layout.cpus) + ")");
  }
  cpu::State state;
  state.shared = plan.free;
  const cpu::PodRequest pod{.uid = "plan",
                            .is_guaranteed = true,
                            .containers = {{"plan", cpu::ContainerRole::app, cpu::whole_cpus(plan.requested)}},
                            .cpu_budget = {}};
  const auto given = allocate(policy, state, pod, "plan", plan.preference, &plan.explanation);
  if (!given) {
    plan.error = given.error().message;
    plan.explanation.clear();
    return plan;
  }
  plan.cpus = given->value_or(cpu::CpuSet());
  return plan;
}

Result<int> show_plan(const CpuOptions& options) {
  const report::CpuPlan plan = TRY(plan_for(options));
  print(options.output.is_text() ? render_text(plan) : in_format(options.output, render_json(plan)));
  return plan.error.empty() ? kFine : kProblem;
}

template <class Value>
Result<Value> named(Result<Value> result, const std::string& path) {
  if (!result) {
    result.error().message = path + ": " + result.error().message;
  }
  return result;
}

Result<int> show_simulation(const CpuOptions& options) {
  const std::string text = TRY(kernel::read_regular_file(options.file));
  cpu_file::ScenarioFile file = TRY(named(cpu_file::parse_scenario(text), options.file));
  if (!file.machine_source.empty()) {
    const std::size_t slash = options.file.rfind('/');
    const std::string directory = slash == std::string::npos ? "" : options.file.substr(0, slash);
    file.scenario.topology = TRY(cpus::read_machine(file.machine_source, directory)).topology;
  }
  const cpu::Simulation simulation = TRY(named(simulate(file.scenario), options.file));
  for (const std::string& note : file.notes) {
    complain({std::errc::invalid_argument, "note: " + note});
  }
  print(options.output.is_text() ? report::render_text(simulation, terminal_width())
                                 : in_format(options.output, report::render_json(simulation)));
  const bool is_served =
      std::ranges::all_of(simulation.steps, [](const cpu::StepResult& step) { return step.error.empty(); });
  return is_served ? kFine : kProblem;
}

// Distributions of Kubernetes have kubelet in a program of their own.
constexpr std::array<std::string_view, 5> kKubelets = {"kubelet", "kubelite", "k3s-server", "k3s-agent", "rke2"};

bool is_kubelet_running() {
  const Result<kernel::Host> host = kernel::open_host();
  return host && std::ranges::any_of(kernel::list_processes(*host), [&host](container::Pid pid) {
           const Result<kernel::Process> process = kernel::read_process(*host, pid);
           return process && std::ranges::find(kKubelets, process->name) != kKubelets.end() && !process->has_ended;
         });
}

std::string kubelets_state_file() {
  const Result<kernel::Host> host = kernel::open_host();
  const Result<config::Config> config = host ? config::read_config(*host) : config::Config();
  return (config ? config->kube.root_dir : config::KubeSettings().root_dir) + "/cpu_manager_state";
}

// Kubelet keeps its state in memory and would write it over the new file, and a sound file is better than a guess.
Result<void> check_rebuild(const CpuOptions& options, const cpu::Policy& policy) {
  if (options.file == std::string(cpus::kDirectory) + "/" + cpus::kStateFile) {
    return fail(std::errc::operation_not_permitted,
                options.file +
                    " is holdfastd's, which rebuilds it by itself where it is damaged, with the owners "
                    "outside pods: systemctl restart holdfastd");
  }
  if (options.force) {
    return {};
  }
  const Result<report::CpuStateReport> now =
      cpus::check_state(options.file, {.policy = &policy, .policy_name = options.policy});
  if (now && now->problems.empty()) {
    return fail(std::errc::file_exists,
                options.file + " is sound: nothing needs to be rebuilt (--force does it all the same)");
  }
  if (options.file == kubelets_state_file() && is_kubelet_running()) {
    return fail(std::errc::device_or_resource_busy,
                "kubelet runs, and would replace the new file: systemctl stop kubelet first (or --force)");
  }
  return {};
}

Result<int> rebuild(const CpuOptions& options, const cpu::Policy& policy) {
  TRY(check_rebuild(options, policy));
  const cpu::Rebuilt rebuilt = TRY(cpus::rebuild_state(policy));
  report::CpuStateReport report{.file = options.file, .format = "v2", .policy = "static"};
  report.state = rebuilt.state;
  for (const cpu::Skipped& skipped : rebuilt.shared) {
    report.notes.push_back("in the shared pool: " + skipped.owner.pod + "/" + skipped.owner.container + ": " +
                           skipped.why);
  }
  if (options.dry_run) {
    report.notes.emplace_back("nothing was written");
  } else {
    const cpus::RebuiltFile replaced = TRY(cpus::replace_state(options.file, rebuilt));
    if (!replaced.kept_aside.empty()) {
      report.notes.push_back("the old file is now " + replaced.kept_aside);
    }
  }
  print(options.output.is_text() ? render_text(report, terminal_width())
                                 : in_format(options.output, render_json(report)));
  return options.dry_run ? kProblem : kFine;  // as every --dry-run with changes pending
}

Result<int> show_state(const CpuOptions& options) {
  const cpus::Machine machine = TRY(read_machine(options));
  const cpu::Layout layout(machine.topology);
  const cpu::Policy policy =
      TRY(make_policy(layout, TRY(options_of(options)), TRY(cpu::parse_cpu_set(options.reserved)), std::nullopt));
  if (options.rebuild && policy.reserved.empty()) {
    return fail(std::errc::invalid_argument, "--rebuild needs --reserved: the CPUs kubelet is configured to keep");
  }
  if (options.rebuild) {
    return rebuild(options, policy);
  }
  const report::CpuStateReport report =
      TRY(cpus::check_state(options.file, {.policy = &policy, .policy_name = options.policy}));
  print(options.output.is_text() ? render_text(report, terminal_width())
                                 : in_format(options.output, render_json(report)));
  return report.problems.empty() ? kFine : kProblem;
}

using Show = Result<int> (*)(const CpuOptions&);

void run(const CpuOptions& options, Show show, int& status) {
  const Result<int> shown = show(options);
  status = shown ? *shown : status_for(shown.error());
}

void add_policy(CLI::App& command, CpuOptions& options) {
  command
      .add_option("--option", options.policy_options,
                  "an option of kubelet's static policy, such as full-pcpus-only=true")
      ->take_all()
      ->type_name("NAME=BOOL");
  command.add_option("--reserved", options.reserved, "CPUs kept for the system, such as 0,64")->type_name("SET");
}

std::string render_machines() {
  std::string text;
  for (const cpu::KnownMachine& machine : cpu::known_machines()) {
    text += "  " + machine.name + std::string(16 - std::min<std::size_t>(machine.name.size(), 15), ' ') +
            machine.description + "\n";
  }
  return text;
}

constexpr const char* kMachineHelp =
    "a file (JSON, or XML of lstopo), synthetic:…, or a known machine's name; none: this machine";

void add_topology(CLI::App& cpu, int& status) {
  const auto options = std::make_shared<CpuOptions>();
  CLI::App* command =
      cpu.add_subcommand("topology", "a map of sockets, NUMA nodes, caches, cores, threads and devices");
  command->add_option("--from,--topology", options->machine, kMachineHelp)->type_name("MACHINE");
  command->add_option("--state", options->file, "a cpu_manager_state: which container owns which core")
      ->type_name("FILE");
  options->output.format = "table";
  add_output(*command, options->output, {"table", "text", "json", "yaml", "svg"});
  command->footer("machines:\n" + render_machines() +
                  "try:  holdfast cpu topology --from dgx-a100 -o svg > machine.svg\n"
                  "      holdfast cpu topology --from 'synthetic:pack:2 numa:2 l3:1 core:8 pu:2'");
  command->callback([options, &status] { run(*options, show_topology, status); });
}

void add_plan(CLI::App& cpu, int& status) {
  const auto options = std::make_shared<CpuOptions>();
  CLI::App* command = cpu.add_subcommand("plan", "which CPUs a container would be given, and why");
  command->add_option("--cpus", options->count, "how many")->required()->type_name("N");
  command->add_option("--free", options->free, "the shared pool it is taken from; none: all CPUs")->type_name("SET");
  command->add_option("--topology,--from", options->machine, kMachineHelp)->type_name("MACHINE");
  add_policy(*command, *options);
  command->add_option("--hint", options->hint, "the topology manager's NUMA nodes, such as 0,1")->type_name("NODES");
  command->add_option("--near-device", options->devices, "first the NUMA node of this device, such as /dev/nvidia0")
      ->take_all()
      ->type_name("NODE");
  add_output(*command, options->output);
  command->footer(
      "exit: 0 it can be done; 1 it cannot, with kubelet's message; 2 usage, or it could not be determined\n"
      "try:  holdfast cpu plan --cpus 16 --topology dgx-a100 --near-device /dev/nvidia0");
  command->callback([options, &status] { run(*options, show_plan, status); });
}

void add_simulate(CLI::App& cpu, int& status) {
  const auto options = std::make_shared<CpuOptions>();
  CLI::App* command = cpu.add_subcommand("simulate", "what a sequence of containers would be given");
  command->add_option("SCENARIO", options->file, "a JSON file; docs/CPU.md describes it")->required();
  add_output(*command, options->output);
  command->footer("exit: 0 every container was served; 1 one was not; 2 usage, or a scenario that makes no sense");
  command->callback([options, &status] { run(*options, show_simulation, status); });
}

void add_state(CLI::App& cpu, int& status) {
  const auto options = std::make_shared<CpuOptions>();
  CLI::App* command = cpu.add_subcommand("state", "what a cpu_manager_state says, and whether kubelet would accept it");
  command->add_option("FILE", options->file, "the file; none: kubelet's own");
  command->add_option("--topology,--from", options->machine, kMachineHelp)->type_name("MACHINE");
  add_policy(*command, *options);
  command->add_option("--policy", options->policy, "the policy kubelet is configured with; none: the file's")
      ->check(CLI::IsMember({"none", "static"}));
  command->add_flag(
      "--rebuild", options->rebuild,
      "replace the file by one made from the cpusets of the running containers; the old one is kept beside it");
  command->add_flag("--dry-run", options->dry_run, "with --rebuild: only show it");
  command->add_flag("--force", options->force, "with --rebuild: also where the file is sound, or kubelet runs");
  add_output(*command, options->output);
  command->footer(
      "exit: 0 it is sound, or was rebuilt; 1 it is not, or --dry-run would replace it; 2 usage, or it could not be "
      "read "
      "or rebuilt");
  command->callback([options, &status] {
    options->file = options->file.empty() ? kubelets_state_file() : options->file;
    run(*options, show_state, status);
  });
}

}  // namespace

void add_cpu(CLI::App& app, int& status) {
  CLI::App* cpu = app.add_subcommand("cpu", "exclusive cores: the machine, plans, simulations, and kubelet's state");
  cpu->require_subcommand(1);
  add_topology(*cpu, status);
  add_plan(*cpu, status);
  add_simulate(*cpu, status);
  add_state(*cpu, status);
  add_cpu_manager(*cpu, status);
}

}  // namespace hf::programs
