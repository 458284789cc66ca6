// `holdfast cpu status`, `assign` and `release`: what the CPU manager of holdfastd does, seen and done by hand.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include "commands.h"
#include "core/base/text.h"
#include "cpu_option.h"
#include "host/cpu_tenant.h"
#include "host/target.h"
#include "kernel/files/clock.h"
#include "programs/console/output.h"
#include "render/cpu.h"
#include "services/cpus/manager.h"

namespace hf::programs {
namespace {

struct ManagerOptions {
  std::string container;
  std::string count;
  std::vector<std::string> devices;
  std::vector<std::string> policy_options;
  Output output;
};

constexpr std::chrono::milliseconds kTimeToNotice{1500};  // until holdfastd has seen the end of a container

// The host with its containers, and a manager for one call.
struct Opened {
  kernel::Host host;
  config::Config config;
  std::uint64_t census_at = 0;  // nanoseconds of CLOCK_MONOTONIC, before it began
  std::vector<host::DiscoveredContainer> discovered;
  cpus::Tenants tenants;
};

Result<std::unique_ptr<Opened>> open() {
  if (::geteuid() != 0) {
    return fail(std::errc::operation_not_permitted, "read and write the cpusets of containers");
  }
  const Progress progress("looking at the containers");
  kernel::Host host = TRY(kernel::open_host());
  config::Config config = TRY(config::read_config(host));
  const std::uint64_t census_at = kernel::monotonic_now();
  std::vector<host::DiscoveredContainer> discovered = TRY(host::take_census(host, config)).discovered_containers;
  cpus::Tenants tenants = host::cpu_tenants_of(discovered);
  host::locate_devices(host, config, discovered, tenants);
  progress.done();
  return std::make_unique<Opened>(std::move(host), std::move(config), census_at, std::move(discovered),
                                  std::move(tenants));
}

Result<cpus::Manager> manager_of(const Opened& opened) {
  cpus::ManagerSettings settings;
  settings.cpus = opened.config.cpus;
  settings.kubelet_state = opened.config.kube.root_dir + "/cpu_manager_state";
  settings.log = [](const std::string& line, bool is_warning) {
    if (is_warning) {
      warn(line);
    }
  };
  settings.clock = kernel::monotonic_now;
  return cpus::Manager::open(opened.host, std::move(settings));
}

void show(const report::CpuStatus& status, const Output& output) {
  if (output.format == "svg") {
    print(render_svg(status));
  } else {
    print(output.is_text() ? render_text(status, terminal_width()) : in_format(output, render_json(status)));
  }
}

Result<int> show_status(const ManagerOptions& options) {
  const std::unique_ptr<Opened> opened = TRY(open());
  cpus::Manager manager = TRY(manager_of(*opened));
  report::CpuStatus status = TRY(manager.read_status(opened->tenants));
  if (!opened->config.cpus.manages && given_cpus(status.state).empty()) {
    status.problem = "cpus.manager is not on in the configuration of holdfastd";
  }
  show(status, options.output);
  const bool is_fine = std::ranges::all_of(status.containers, [](const auto& one) { return one.problem.empty(); });
  return is_fine ? kFine : kProblem;
}

Result<host::CpuTenant*> find_tenant(Opened& opened, const std::string& name) {
  std::vector<container::Container> containers;
  for (const host::CpuTenant& tenant : opened.tenants) {
    containers.push_back(tenant.container);
  }
  const std::vector<const container::Container*> matches = matches_of(containers, name);
  if (matches.empty()) {
    return fail(std::errc::invalid_argument, host::no_such_container(containers, name));
  }
  if (matches.size() > 1) {
    return fail(std::errc::invalid_argument, quote(name) + " names " + std::to_string(matches.size()) +
                                                 " containers: " + unambiguous_name_of(*matches[0]) + ", " +
                                                 unambiguous_name_of(*matches[1]));
  }
  return &opened.tenants[std::size_t(matches.front() - containers.data())];
}

Result<cpu::CpuRequest> request_of(const ManagerOptions& options) {
  std::map<std::string, std::string> labels = {{"holdfast.cpus", options.count}};
  TRY(check_option_names(options.policy_options));
  if (!options.policy_options.empty()) {
    labels["holdfast.cpus.options"] = join(options.policy_options, ",");
  }
  if (!options.devices.empty()) {
    labels["holdfast.cpus.near"] = join(options.devices, ",");
  }
  return TRY(cpu::request_in(labels)).value();
}

void note_if_off(const Opened& opened) {
  if (!opened.config.cpus.manages) {
    warn("note: cpus.manager is off, so that containers which start later may run on these CPUs too");
  }
}

// Where no manager runs, this command gives back the CPUs of containers that have ended. A manager knows of containers
// that are being created, so it is left to the manager, and given the time. What other containers ask for, the manager
// gives.
Result<void> remove_ended(const Opened& opened, cpus::Manager& manager) {
  if (!opened.config.cpus.manages) {
    cpus::Tenants tenants = opened.tenants;
    std::ranges::for_each(tenants, [](host::CpuTenant& one) { one.tenant.request.reset(); });
    return manager.reconcile(tenants, {.census_at = opened.census_at, .owners = {}});
  }
  const report::CpuStatus status = TRY(manager.read_status(opened.tenants));
  const bool has_ended = std::ranges::any_of(status.state.entries, [&](const auto& entry) {
    return std::ranges::none_of(opened.tenants,
                                [&](const host::CpuTenant& one) { return one.tenant.owner == entry.first; });
  });
  if (has_ended) {
    std::this_thread::sleep_for(kTimeToNotice);
  }
  return {};
}

Result<int> assign(const ManagerOptions& options) {
  const cpu::CpuRequest request = TRY(request_of(options));
  const std::unique_ptr<Opened> opened = TRY(open());
  host::CpuTenant& tenant = *TRY(find_tenant(*opened, options.container));
  cpus::Tenants by_hand = {tenant};  // what it asks for itself stays known, and is another number as a rule
  by_hand.front().tenant.request = request;
  host::locate_devices(opened->host, opened->config, opened->discovered, by_hand);
  tenant.tenant.device_nodes = by_hand.front().tenant.device_nodes;
  cpus::Manager manager = TRY(manager_of(*opened));
  TRY(remove_ended(*opened, manager));
  TRY(manager.assign(opened->tenants, tenant.tenant.owner, request));
  note_if_off(*opened);
  show(manager.status(), options.output);
  return kFine;
}

Result<int> release(const ManagerOptions& options) {
  const std::unique_ptr<Opened> opened = TRY(open());
  const host::CpuTenant& tenant = *TRY(find_tenant(*opened, options.container));
  cpus::Manager manager = TRY(manager_of(*opened));
  TRY(manager.release(opened->tenants, tenant.tenant.owner));
  show(manager.status(), options.output);
  return kFine;
}

using Run = Result<int> (*)(const ManagerOptions&);

void run(const ManagerOptions& options, Run function, int& status) {
  const Result<int> done = function(options);
  if (done) {
    status = *done;
    return;
  }
  const bool is_refusal = done.error().reason == Reason::unavailable;
  const int code = complain(done.error());
  status = is_refusal ? kProblem : code;
}

}  // namespace

void add_cpu_manager(CLI::App& cpu, int& status) {
  const auto options = std::make_shared<ManagerOptions>();
  CLI::App* show = cpu.add_subcommand("status", "the shared pool, and which container has which CPUs of its own");
  add_output(*show, options->output, {"text", "json", "yaml", "svg"});
  show->footer("exit: 0 every container has what it should; 1 one has not; 2 usage, or it could not be determined");
  show->callback([options, &status] { run(*options, show_status, status); });

  CLI::App* give = cpu.add_subcommand("assign", "give a running container CPUs of its own");
  give->add_option("CONTAINER", options->container, "a name, the beginning of an id, or pod/container")->required();
  give->add_option("N", options->count, "how many CPUs")->required()->check(CLI::Range(1U, cpu::kMostCpus));
  give->add_option("--near-device", options->devices,
                   "first the NUMA node of this device of the container; none: of all")
      ->take_all()
      ->type_name("NODE")
      ->check([](const std::string& name) {
        const bool is_node = name == "none" || name == "gpu" || name.starts_with("/dev/");
        return is_node ? std::string() : "'" + name + "': want gpu, none, or a device node such as /dev/nvidia0";
      });
  give->add_option("--option", options->policy_options, "an option of the static policy, such as full-pcpus-only")
      ->take_all()
      ->type_name("NAME[=BOOL]");
  add_output(*give, options->output, {"text", "json", "yaml", "svg"});
  give->footer(
      "exit: 0 done; 1 there are not enough free CPUs; 2 usage, or it could not be done\n"
      "try:  holdfast cpu assign train 4");
  give->callback([options, &status] { run(*options, assign, status); });

  CLI::App* take = cpu.add_subcommand("release", "take the CPUs back: the container runs in the shared pool again");
  take->add_option("CONTAINER", options->container, "a name, the beginning of an id, or pod/container")->required();
  add_output(*take, options->output, {"text", "json", "yaml", "svg"});
  take->callback([options, &status] { run(*options, release, status); });
}

}  // namespace hf::programs
