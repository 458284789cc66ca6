#include "host/census.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <set>

#include "adapters/kube/checkpoint.h"
#include "core/base/text.h"
#include "core/cpu/cpu_set.h"
#include "host/container_reader.h"
#include "host/group.h"
#include "kernel/files/file.h"
#include "kernel/process/process.h"
#include "kernel/process/subprocess.h"

namespace hf::host {
namespace {

using container::Container;
using container::Pid;

constexpr std::chrono::milliseconds kVersionLimit{1000};

std::string devices_of(const std::map<std::string, std::string>& v1) {
  const auto found = v1.find("devices");
  return found == v1.end() ? std::string() : found->second;
}

// Null where the container must be read again. Before its program starts, its first process is the runtime's own, in
// another mount namespace.
const KnownContainer* find_known(const kernel::Host& host, const std::map<std::int32_t, const KnownContainer*>& known,
                                 const Group& group) {
  const auto found = known.find(group.init.value);
  if (found == known.end()) {
    return nullptr;
  }
  const Container& it = *found->second->container;
  const Result<kernel::ProcessHandle> init = kernel::hold_process(host, group.init);
  const Result<kernel::Process> process =
      init ? kernel::read_process(*init) : Result<kernel::Process>(std::unexpected(init.error()));
  const bool is_same = process && process->started_at == it.started_ticks && it.cgroup == group.cgroup &&
                       it.v2 == group.v2 && devices_of(it.v1) == devices_of(group.v1) &&
                       it.mount_namespace == kernel::read_namespace(*init, "mnt") &&
                       kernel::read_cgroup_lines(*init) == group.lines;
  return is_same ? found->second : nullptr;
}

// The CPUs may change while the container stays the same.
void refresh_cpus(const kernel::Host& host, Container& it) {
  const Result<kernel::ProcessHandle> init = kernel::hold_process(host, it.init);
  it.cpus = init ? cpus_of(*init) : it.cpus;
  it.has_exclusive_cpus = false;
}

// Exclusive: less than all CPUs, and none of them belongs to a container with another set. kubelet's own state is used
// first.
void mark_exclusive(const kernel::Host& host, const std::string& kubelet,
                    std::vector<DiscoveredContainer>& discovered_containers) {
  const Result<std::string> online = kernel::read_text(host.root.get(), "sys/devices/system/cpu/online");
  const Result<std::string> state_text =
      kernel::read_trusted_file(host.root.get(), kernel::below_root(kubelet + "/cpu_manager_state"));
  const kube::CpuState state =
      state_text ? kube::parse_cpu_state(*state_text).value_or(kube::CpuState()) : kube::CpuState();
  std::map<std::string, int> users;
  for (const DiscoveredContainer& discovered : discovered_containers) {
    ++users[discovered.container.cpus.value_or("")];
  }
  for (DiscoveredContainer& discovered : discovered_containers) {
    Container& it = discovered.container;
    if (it.pod && state.exclusive.contains(it.pod->uid + "/" + it.pod->container)) {
      it.has_exclusive_cpus = true;
      continue;
    }
    const std::string cpus = it.cpus.value_or("");
    const Result<cpu::CpuSet> own = cpu::parse_cpu_set(cpus);
    const Result<cpu::CpuSet> all = online ? cpu::parse_cpu_set(*online) : own;
    if (!own || own->empty() || !all || *own == *all || users[cpus] > 1) {
      continue;
    }
    it.has_exclusive_cpus = std::ranges::none_of(users, [&](const auto& entry) {
      const Result<cpu::CpuSet> other = cpu::parse_cpu_set(entry.first);
      return entry.first != cpus && other && other->overlaps(*own);
    });
  }
}

}  // namespace

std::vector<Container> Census::containers() const {
  std::vector<Container> all;
  all.reserve(discovered_containers.size());
  for (const DiscoveredContainer& discovered : discovered_containers) {
    all.push_back(discovered.container);
  }
  return all;
}

const engine::ParsedVersion& RuntimeVersions::version_of(const kernel::Host& host, const std::string& program) {
  std::vector<std::string> places = {program};
  if (!program.starts_with('/')) {
    places = {"/usr/local/sbin/" + program, "/usr/local/bin/" + program, "/usr/sbin/" + program, "/usr/bin/" + program};
  }
  const auto place = std::ranges::find_if(
      places, [&host](const std::string& path) { return kernel::exists(host.root.get(), kernel::below_root(path)); });
  const std::string found = place == places.end() ? program : *place;
  const std::string stamp = kernel::stamp_of(host.root.get(), kernel::below_root(found));
  Known& known = known_[found];
  if (known.stamp != stamp || stamp.empty()) {
    const Result<std::string> text = kernel::run_program(host, found, {"--version"}, kVersionLimit);
    known = {stamp, text ? engine::parse_version(*text).value_or(engine::ParsedVersion()) : engine::ParsedVersion()};
  }
  return known.version;
}

Result<std::optional<DiscoveredContainer>> find_newcomer(const kernel::Host& host, const config::Config& config,
                                                         Pid process, std::set<std::string> cgroups) {
  const std::optional<Group> group = find_group_of(host, process);
  if (!group) {
    return std::nullopt;
  }
  cgroups.insert(group->cgroup);
  return TRY(ContainerReader(host, config, nullptr, std::move(cgroups)).read_container(*group));
}

Result<Census> take_census(const kernel::Host& host, const config::Config& config) {
  RuntimeVersions versions;
  return take_census(host, config, versions, {});
}

Result<Census> take_census(const kernel::Host& host, const config::Config& config, RuntimeVersions& versions,
                           const std::vector<KnownContainer>& known) {
  Census census;
  std::map<std::int32_t, const KnownContainer*> by_process;
  for (const KnownContainer& one : known) {
    by_process.emplace(one.container->init.value, &one);
  }
  const std::vector<Group> groups = find_groups(host);
  std::set<std::string> cgroups;
  for (const Group& group : groups) {
    cgroups.insert(group.cgroup);
  }
  ContainerReader reader(host, config, &versions, std::move(cgroups));
  for (const Group& group : groups) {
    const KnownContainer* same = find_known(host, by_process, group);
    Result<DiscoveredContainer> discovered =
        same != nullptr ? DiscoveredContainer{*same->container, same->spec, same->spec_file, ""}
                        : reader.read_container(group);
    if (same != nullptr) {
      refresh_cpus(host, discovered->container);
    }
    if (discovered) {
      census.discovered_containers.push_back(*std::move(discovered));
    }  // otherwise it has ended meanwhile
  }
  mark_exclusive(host, config.kube.root_dir, census.discovered_containers);
  std::map<std::string, int> titles;
  for (const DiscoveredContainer& discovered : census.discovered_containers) {
    ++titles[title_of(discovered.container)];
  }
  for (DiscoveredContainer& discovered : census.discovered_containers) {
    discovered.container.shares_title = titles[title_of(discovered.container)] > 1;
  }
  std::ranges::sort(census.discovered_containers, [](const DiscoveredContainer& a, const DiscoveredContainer& b) {
    return std::pair(title_of(a.container), a.container.id) < std::pair(title_of(b.container), b.container.id);
  });
  return census;
}

}  // namespace hf::host
