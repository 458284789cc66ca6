#include "services/guard/survey.h"

#include <algorithm>

#include "adapters/ledger/ledger.h"
#include "adapters/systemd/unit.h"
#include "core/base/text.h"
#include "kernel/clock.h"
#include "kernel/file.h"
#include "node/evidence.h"
#include "node/inventory.h"

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
      verdict.healed.nodes.back().because = {};  // `owed` has the reasons; a node may have thousands of wards
    }
  }
  return verdict;
}

// systemd is told only of a unit that is the container's own: one around it has other processes as well.
bool owns_unit(const container::Container& it) { return !it.is_guest && name_in(it.cgroup) == it.scope; }

// A host may have thousands of containers, each in a dozen hierarchies, and an image brings as many labels and
// variables as it likes.
void keep_what_is_needed(node::Resident& resident) {
  constexpr std::size_t kMostLabels = 65536;  // bytes
  std::erase_if(resident.container.v1, [](const auto& entry) { return entry.first != "devices"; });
  std::size_t size = 0;
  std::erase_if(resident.container.labels, [&size](const auto& label) {
    size += label.first.size() + label.second.size();
    return size > kMostLabels;
  });
  if (resident.spec) {
    std::erase_if(resident.spec->environment, [](const auto& variable) {
      return !variable.first.starts_with("NVIDIA_") && !variable.first.starts_with("CUDA_");
    });
  }
}

Result<std::shared_ptr<Ward>> make_ward(const kernel::Host& host, const container::Policy& policy,
                                        const container::Container& it, const container::Entitlement& owed,
                                        const WardPtr& known) {
  auto ward = std::make_shared<Ward>();
  ward->container = it;
  ward->owed = owed;
  Verdict verdict = judge(policy, it, owed);
  ward->mode = verdict.mode;
  ward->healed = ward->owed;
  if (verdict.healed.nodes.size() < owed.nodes.size()) {
    ward->healed = std::move(verdict.healed);
  }
  ward->handle = known ? known->handle
                       : std::make_shared<const kernel::ContainerHandle>(TRY(kernel::ContainerHandle::open(host, it)));
  return ward;
}

void read_unit(const kernel::Host& host, const device::Inventory& inventory, const container::Policy& policy,
               Ward& ward) {
  if (ward.container.scope.empty() || !systemd::is_running(host)) {
    return;
  }
  const std::optional<systemd::UnitDevices> unit = systemd::read_unit_devices(host, ward.container.scope);
  if (!unit) {
    return;
  }
  ward.has_unit = true;
  const device::Table table = meaning(*unit, node::words_of(host, inventory));
  for (const OwedNode& node : ward.owed->nodes) {
    if (node.device && !table.allows(request_for(node))) {
      ward.missing_in_unit.push_back(node.path);
      if (owns_unit(ward.container) && mode_for(policy, ward.container, node.device_class) >= Mode::harden) {
        ward.to_harden.push_back(node);
      }
    }
  }
}

}  // namespace

Result<WardPtr> examine_newcomer(const Newcomer& newcomer, const config::Config& config,
                                 const device::Inventory& inventory) {
  const kernel::Host& host = newcomer.host;
  node::Resident resident = newcomer.resident;
  const container::Entitlement owed = node::entitlement_of(host, resident, node::read_sources(host), inventory, config);
  if (owed.owes_nothing()) {
    return nullptr;
  }
  keep_what_is_needed(resident);
  std::shared_ptr<Ward> ward = TRY(make_ward(host, config.policy, resident.container, owed, nullptr));
  ward->met_at = kernel::monotonic_now();
  ward->creator = newcomer.creator;
  return ward;
}

WardPtr Surveyor::known_as(const node::Resident& resident, const container::Entitlement& owed,
                           const config::Config& config) const {
  const auto [first, last] = wards_.equal_range(resident.container.id.value);
  for (const auto& [id, ward] : std::ranges::subrange(first, last)) {
    const bool is_same =
        ward->container.init == resident.container.init &&
        ward->container.started_ticks == resident.container.started_ticks &&
        ward->container.cgroup == resident.container.cgroup && ward->container.cpus == resident.container.cpus &&
        ward->container.has_exclusive_cpus == resident.container.has_exclusive_cpus && same_owed(*ward->owed, owed);
    if (is_same) {
      const Verdict verdict = judge(config.policy, ward->container, owed);
      return verdict.mode == ward->mode && same_owed(verdict.healed, *ward->healed) ? ward : nullptr;
    }
  }
  return nullptr;
}

Result<WardPtr> Surveyor::examine(const node::Resident& resident, const container::Entitlement& owed,
                                  const Survey& survey, const config::Config& config, Care care) {
  WardPtr known = known_as(resident, owed, config);
  if (known && !known->handle->check()) {
    known = nullptr;  // its first process has moved to another cgroup
  }
  if (known && care == Care::changes) {
    return known;
  }
  std::shared_ptr<Ward> ward = TRY(make_ward(host_, config.policy, resident.container, owed, known));
  ward->met_at = known ? known->met_at : survey.started_at;
  read_unit(host_, survey.inventory, config.policy, *ward);
  return ward;
}

Result<Survey> Surveyor::take(const config::Config& config, Care care) {
  const std::uint64_t started = kernel::monotonic_now();
  const std::uint64_t worked = kernel::thread_cpu_now();
  Survey survey;
  survey.at = kernel::wall_now();
  if (care == Care::everything) {
    ledger::remove_orphans(host_);
  }
  survey.started_at = started;
  census_ = TRY(node::take_census(host_, config, versions_, care == Care::changes ? &census_ : nullptr));
  std::ranges::for_each(census_.residents, keep_what_is_needed);
  survey.inventory = node::take_inventory(host_, config, node::Libraries::leave);
  survey.online_cpus =
      trim(kernel::read_text(host_.root.get(), "sys/devices/system/cpu/online").value_or(std::string()));
  survey.notes = census_.notes;
  const node::Sources sources = node::read_sources(host_);
  for (const node::Resident& resident : census_.residents) {
    container::Entitlement owed = node::entitlement_of(host_, resident, sources, survey.inventory, config);
    if (owed.owes_nothing()) {
      report::WardLine& other = survey.others.emplace_back();
      other.container = resident.container;
      other.owed = std::move(owed);
      continue;
    }
    Result<WardPtr> ward = examine(resident, owed, survey, config, care);
    if (ward) {
      survey.wards.push_back(*std::move(ward));
    } else {  // it has ended meanwhile, or cannot be looked at
      survey.notes.push_back(title_of(resident.container) + ": " + ward.error().message);
    }
  }
  wards_.clear();
  for (const WardPtr& ward : survey.wards) {
    wards_.emplace(ward->container.id.value, ward);
  }
  survey.took_ns = kernel::monotonic_now() - started;
  survey.cpu_ns = kernel::thread_cpu_now() - worked;
  return survey;
}

}  // namespace hf::guard
