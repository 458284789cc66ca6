#include "services/guard/survey.h"

#include <algorithm>

#include "adapters/ledger/ledger.h"
#include "adapters/systemd/unit.h"
#include "core/base/text.h"
#include "host/evidence.h"
#include "host/inventory.h"
#include "kernel/files/clock.h"
#include "kernel/files/file.h"

namespace hf::guard {
namespace {

using container::Mode;
using container::OwedNode;

bool same_owed(const container::Entitlement& a, const container::Entitlement& b) {
  return std::ranges::equal(a.nodes, b.nodes, [](const OwedNode& left, const OwedNode& right) {
    return left.path == right.path && left.device == right.device && left.access == right.access &&
           left.device_class == right.device_class;
  });
}

struct Verdict {
  Mode mode = Mode::observe;
  container::Entitlement healed;
};

Verdict judge(const container::Policy& policy, const container::Container& it, const container::Entitlement& owed) {
  Verdict verdict;
  verdict.healed.nodes.reserve(owed.nodes.size());
  for (const OwedNode& node : owed.nodes) {
    const Mode mode = mode_for(policy, it, node.device_class);
    verdict.mode = std::max(verdict.mode, mode);
    if (mode >= Mode::heal) {
      verdict.healed.nodes.push_back(node);
      verdict.healed.nodes.back().because = {};  // `owed` has the reasons; a host may have thousands of containers
    }
  }
  return verdict;
}

// Only a unit that is the container's own is changed: one around it has other processes as well.
bool owns_unit(const container::Container& it) { return !it.shares_cgroup && base_name(it.cgroup) == it.unit; }

// A host may have thousands of containers, each in a dozen hierarchies, and an image may have any number of labels and
// variables.
void keep_what_is_needed(host::DiscoveredContainer& discovered, bool keeps_cpus) {
  constexpr std::size_t kMostLabels = 65536;  // bytes
  std::erase_if(discovered.container.v1, [keeps_cpus](const auto& entry) {
    const bool is_of_cpus = entry.first == "cpuset" || entry.first == "cpu";
    return entry.first != "devices" && !(keeps_cpus && is_of_cpus);
  });
  std::size_t size = 0;
  std::erase_if(discovered.container.labels, [&size](const auto& label) {
    size += label.first.size() + label.second.size();
    return size > kMostLabels;
  });
  if (discovered.spec) {
    std::erase_if(discovered.spec->environment, [](const auto& variable) {
      return !variable.first.starts_with("NVIDIA_") && !variable.first.starts_with("CUDA_");
    });
  }
}

Result<std::shared_ptr<GuardedContainer>> make_guarded(const kernel::Host& host, const container::Policy& policy,
                                                       const container::Container& it,
                                                       const container::Entitlement& owed,
                                                       const GuardedContainerPtr& known) {
  auto guarded = std::make_shared<GuardedContainer>();
  guarded->container = it;
  guarded->owed = owed;
  Verdict verdict = judge(policy, it, owed);
  guarded->mode = verdict.mode;
  guarded->healed = guarded->owed;
  if (verdict.healed.nodes.size() < owed.nodes.size()) {
    guarded->healed = std::move(verdict.healed);
  }
  guarded->handle = known
                        ? known->handle
                        : std::make_shared<const kernel::ContainerHandle>(TRY(kernel::ContainerHandle::open(host, it)));
  return guarded;
}

void read_unit(const kernel::Host& host, const device::Inventory& inventory, const container::Policy& policy,
               GuardedContainer& guarded) {
  if (!owns_unit(guarded.container) || !systemd::is_running(host)) {
    return;
  }
  const std::optional<systemd::UnitDevices> unit = systemd::read_unit_devices(host, *guarded.container.unit);
  if (!unit) {
    return;
  }
  const device::Table table = meaning(*unit, host::device_allow_context(host, inventory));
  for (const OwedNode& node : guarded.owed->nodes) {
    const bool is_missing = node.device && !table.allows(request_for(node));
    if (is_missing && mode_for(policy, guarded.container, node.device_class) >= Mode::harden) {
      guarded.to_harden.push_back(node);
    }
  }
}

}  // namespace

Result<GuardedContainerPtr> examine_newcomer(const Newcomer& newcomer, const config::Config& config,
                                             const device::Inventory& inventory) {
  const kernel::Host& host = newcomer.host;
  host::DiscoveredContainer discovered = newcomer.discovered;
  const container::Entitlement owed =
      host::entitlement_of(host, discovered, host::read_sources(host, config), inventory, config);
  if (owed.owes_nothing()) {
    return nullptr;
  }
  keep_what_is_needed(discovered, false);
  std::shared_ptr<GuardedContainer> guarded =
      TRY(make_guarded(host, config.policy, discovered.container, owed, nullptr));
  guarded->first_seen_at = kernel::monotonic_now();
  guarded->creator = newcomer.creator;
  return guarded;
}

GuardedContainerPtr Surveyor::find_known(const host::DiscoveredContainer& discovered,
                                         const container::Entitlement& owed, const config::Config& config) const {
  const auto found = guarded_containers_.find(key_of(discovered.container));
  if (found == guarded_containers_.end()) {
    return nullptr;
  }
  const GuardedContainerPtr& guarded = found->second;
  const bool is_same = guarded->container.id == discovered.container.id &&
                       guarded->container.cgroup == discovered.container.cgroup &&
                       guarded->container.cpus == discovered.container.cpus &&
                       guarded->container.has_exclusive_cpus == discovered.container.has_exclusive_cpus &&
                       same_owed(*guarded->owed, owed);
  if (!is_same) {
    return nullptr;
  }
  const Verdict verdict = judge(config.policy, guarded->container, owed);
  return verdict.mode == guarded->mode && same_owed(verdict.healed, *guarded->healed) ? guarded : nullptr;
}

Result<GuardedContainerPtr> Surveyor::examine(const host::DiscoveredContainer& discovered,
                                              const container::Entitlement& owed, const Survey& survey,
                                              const config::Config& config, SurveyScope scope) {
  GuardedContainerPtr known = find_known(discovered, owed, config);
  if (known && !known->handle->check()) {
    known = nullptr;  // its first process has moved to another cgroup
  }
  if (known && scope == SurveyScope::changes) {
    return known;
  }
  std::shared_ptr<GuardedContainer> guarded =
      TRY(make_guarded(host_, config.policy, discovered.container, owed, known));
  guarded->first_seen_at = known ? known->first_seen_at : survey.started_at;
  read_unit(host_, survey.inventory, config.policy, *guarded);
  return guarded;
}

void Surveyor::add_container(host::DiscoveredContainer& discovered, container::Entitlement owed, Survey& survey,
                             const config::Config& config, SurveyScope scope) {
  std::optional<Shared<container::Container>> known;
  if (owed.owes_nothing()) {
    report::ContainerStatus& other = survey.others.emplace_back();
    other.container = std::move(discovered.container);
    other.owed = std::move(owed);
    known = other.container;
  } else if (Result<GuardedContainerPtr> guarded = examine(discovered, owed, survey, config, scope)) {
    known.emplace(*guarded, (*guarded)->container);
    survey.guarded_containers.push_back(*std::move(guarded));
  } else {  // it has ended meanwhile, or cannot be opened
    survey.notes.push_back(title_of(discovered.container) + ": " + guarded.error().message);
    return;
  }
  if (discovered.spec) {  // otherwise it is read again, perhaps with more success
    known_.emplace_back(*std::move(known), *std::move(discovered.spec), discovered.spec_file);
  }
}

Result<Survey> Surveyor::take(const config::Config& config, SurveyScope scope) {
  const std::uint64_t started = kernel::monotonic_now();
  const std::uint64_t worked = kernel::thread_cpu_now();
  Survey survey;
  survey.at = kernel::wall_now();
  if (scope == SurveyScope::everything) {
    ledger::remove_orphans(host_);
    known_.clear();
  }
  survey.started_at = started;
  host::Census census = TRY(host::take_census(host_, config, versions_, known_));
  const bool has_listener = listener_ && config.manages_cpus();
  if (has_listener) {
    listener_(census.discovered_containers, started);
  }
  for (host::DiscoveredContainer& discovered : census.discovered_containers) {
    keep_what_is_needed(discovered, has_listener);
  }
  known_.clear();
  survey.inventory = host::take_inventory(host_, config, host::Libraries::leave);
  survey.online_cpus =
      trim(kernel::read_text(host_.root.get(), "sys/devices/system/cpu/online").value_or(std::string()));
  survey.notes = census.notes;
  const host::Sources sources = host::read_sources(host_, config);
  for (host::DiscoveredContainer& discovered : census.discovered_containers) {
    add_container(discovered, host::entitlement_of(host_, discovered, sources, survey.inventory, config), survey,
                  config, scope);
  }
  guarded_containers_.clear();
  for (const GuardedContainerPtr& guarded : survey.guarded_containers) {
    guarded_containers_.emplace(key_of(*guarded), guarded);
  }
  survey.took_ns = kernel::monotonic_now() - started;
  survey.cpu_ns = kernel::thread_cpu_now() - worked;
  return survey;
}

}  // namespace hf::guard
