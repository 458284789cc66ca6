#include "services/cpus/state.h"

#include <fcntl.h>

#include "adapters/config/config.h"
#include "adapters/kube/cpu_checkpoint.h"
#include "core/base/text.h"
#include "core/container/cgroup_name.h"
#include "host/census.h"
#include "kernel/cpu/cpuset.h"
#include "kernel/files/file.h"
#include "kernel/files/host.h"

namespace hf::cpus {
namespace {

constexpr const char* kPolicy = "static";
constexpr std::uint32_t kPrivate = 0600;
constexpr std::uint32_t kMostAside = 10;  // damaged files; then the last one is replaced

void add_cure(report::CpuStateReport& report) {
  report.cure = {
      "holdfast cpu state " + report.file + " --rebuild --reserved SET   # from the cpusets of the containers that run",
      "kubectl drain NODE && systemctl stop kubelet && rm " + report.file +
          " && systemctl start kubelet   # kubelet's own way",
  };
}

void check_against(const Expected& expected, report::CpuStateReport& report) {
  if (expected.policy == nullptr || report.policy != kPolicy) {
    return;
  }
  cpu::State state = report.state;
  for (const auto& [id, cpus] : report.unnamed) {
    state.entries[{"", id}] = cpus;  // kubelet knows their names from the engine
  }
  if (const Result<void> checked = cpu::check_as_kubelet(*expected.policy, state); !checked) {
    report.problems.push_back({"it does not fit this machine: " + checked.error().message, checked.error().message});
  }
  if (const Result<void> owners = cpu::check_owners(*expected.policy, state); !owners) {
    report.problems.push_back({owners.error().message, ""});
  }
}

// Kubelet does not know containers outside pods, so they say nothing about its state. It confines no pause container,
// and a container inside another one shares that one's CPUs.
std::vector<cpu::ManagedContainer> managed_containers_of(const kernel::Host& host, const host::Census& census) {
  std::vector<cpu::ManagedContainer> managed_containers;
  for (const container::Container& container : census.containers()) {
    if (container.is_sandbox || container.inside || !container.pod || container.pod->uid.empty()) {
      continue;
    }
    cpu::ManagedContainer managed{.owner = {container.pod->uid, container.pod->container},
                                  .id = container.id.value,
                                  .present = {},
                                  .can_own = container::is_guaranteed(container.cgroup)};
    // The cpuset counts, not a narrower affinity that a process has set for itself (sched_setaffinity).
    const Result<cpu::CpuSet> cpus =
        kernel::read_cpuset(host, container.init, std::string(base_name(container.cgroup)));
    if (cpus && !cpus->empty()) {
      managed.present = *cpus;
    }
    managed_containers.push_back(std::move(managed));
  }
  return managed_containers;
}

// A hard link, so that the old name never disappears.
Result<std::string> keep_aside(const std::string& file) {
  std::string aside = file + ".damaged";
  for (std::uint32_t number = 1; number < kMostAside && kernel::exists(AT_FDCWD, aside); ++number) {
    aside = file + ".damaged." + std::to_string(number);
  }
  TRY(kernel::remove_file(AT_FDCWD, aside));
  TRY(kernel::create_hard_link(AT_FDCWD, file, aside));
  return aside;
}

}  // namespace

Result<report::CpuStateReport> check_state(const std::string& file, const Expected& expected) {
  const std::string text = TRY(kernel::read_regular_file(file));
  report::CpuStateReport report{.file = file};
  kube::CpuReader reader{.policy = expected.policy_name};
  auto checkpoint = kube::parse_cpu_checkpoint(text, reader);
  if (!checkpoint) {
    const kube::CheckpointFault fault = checkpoint.error();
    reader.budgets = cpu::PodBudgets::honoured;
    checkpoint = kube::parse_cpu_checkpoint(text, reader);
    if (!checkpoint) {
      report.problems.push_back({fault.what, kube::restart_error(fault.kubelet_says, file)});
      add_cure(report);
      return report;
    }
    report.notes.push_back("only a kubelet with the gate PodLevelResourceManagers reads it; another says: " +
                           kube::restart_error(fault.kubelet_says, file));
  }
  report.format = to_string(checkpoint->format);
  report.policy = checkpoint->policy;
  report.is_checked = checkpoint->is_checked;
  report.state = checkpoint->state;
  report.unnamed.assign(checkpoint->by_id.begin(), checkpoint->by_id.end());
  if (!checkpoint->by_id.empty()) {
    report.notes.emplace_back(
        "it is older than kubelet 1.18: its containers are known by id, and 1.37 does not read it");
  }
  if (!checkpoint->older_kubelets.empty()) {
    report.notes.push_back(checkpoint->older_kubelets);
  }
  if (!checkpoint->is_checked) {
    report.notes.emplace_back("its checksum is 0, which kubelet accepts without checking it");
  }
  check_against(expected, report);
  if (!report.problems.empty()) {
    add_cure(report);
  }
  return report;
}

Result<cpu::State> read_state(const std::string& file) {
  const report::CpuStateReport report = TRY(check_state(file, {}));
  if (!report.problems.empty()) {
    return fail(std::errc::invalid_argument, file + ": " + report.problems.front().what);
  }
  return report.state;
}

Result<std::map<std::string, std::string>> read_pod_names() {
  const kernel::Host host = TRY(kernel::open_host());
  const host::Census census = TRY(host::take_census(host, TRY(config::read_config(host))));
  std::map<std::string, std::string> names;
  for (const host::DiscoveredContainer& discovered : census.discovered_containers) {
    const std::optional<container::Pod>& pod = discovered.container.pod;
    if (pod && !pod->uid.empty() && !pod->name.empty()) {
      names[pod->uid] = (pod->name_space.empty() ? "" : pod->name_space + "/") + pod->name;
    }
  }
  return names;
}

Result<void> write_state(const std::string& file, const cpu::State& state) {
  if (!state.pods.empty()) {
    return fail(std::errc::not_supported, "write " + file + ": its format has no place for budgets of pods");
  }
  return kernel::replace_file(
      AT_FDCWD, file, {.text = kube::render_cpu_checkpoint(kPolicy, state), .mode = kPrivate, .is_synced = true});
}

Result<cpu::Rebuilt> rebuild_state(const cpu::Policy& policy) {
  const kernel::Host host = TRY(kernel::open_host());
  const host::Census census = TRY(host::take_census(host, TRY(config::read_config(host))));
  return cpu::rebuild(policy, managed_containers_of(host, census));
}

Result<RebuiltFile> replace_state(const std::string& file, const cpu::Rebuilt& rebuilt) {
  RebuiltFile replaced{.rebuilt = rebuilt, .kept_aside = ""};
  if (kernel::exists(AT_FDCWD, file)) {
    replaced.kept_aside = TRY(keep_aside(file));
  }
  const Result<void> written = write_state(file, rebuilt.state);
  if (!written && !replaced.kept_aside.empty()) {
    (void)kernel::remove_file(AT_FDCWD, replaced.kept_aside);  // the file itself is still there
  }
  return written ? Result<RebuiltFile>(std::move(replaced)) : std::unexpected(written.error());
}

}  // namespace hf::cpus
