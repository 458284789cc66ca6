// What ManagerThread answers to NRI.
#include <chrono>
#include <future>
#include <memory>

#include "core/base/text.h"
#include "core/container/cgroup_name.h"
#include "host/nri_container.h"
#include "kernel/files/clock.h"
#include "services/cpus/manager_thread.h"

namespace hf::cpus {
namespace {

constexpr std::chrono::milliseconds kAnswerLimit{50};     // an engine waits for it
constexpr std::chrono::milliseconds kDeviceLimit{20};     // of these, for reading the devices
constexpr std::uint64_t kCreationTime = 120'000'000'000;  // from a container's creation to its first process
constexpr std::uint64_t kLongestLoss = 600'000'000'000;   // an engine that stays away writes nothing

}  // namespace

nri::Handlers ManagerThread::nri_handlers() {
  nri::Handlers handlers;
  handlers.configured = [this](const std::string& engine) {
    settings_.log("nri-connected engine=" + quote(printable(engine)), false);
  };
  handlers.synchronize = [this](const std::vector<nri::Container>& containers) {
    loop_.post([this, containers] { synchronize(containers); });
  };
  handlers.create = [this](const nri::Container& container) { return create(container); };
  handlers.update = [this](const nri::Container& container) {
    return decide(
        container, [this, container] { return update(container); }, std::chrono::steady_clock::now() + kAnswerLimit);
  };
  handlers.stopped = [this](const nri::Container& container) { loop_.post([this, container] { stop(container); }); };
  handlers.lost = [this] { loop_.post([this] { lose_engine(); }); };
  return handlers;
}

// On NRI's thread. Without an answer in time the container gets the cpuset that the engine would give it; it is moved
// later, and the engine is not taken for another program that wants it elsewhere.
nri::Adjustment ManagerThread::decide(const nri::Container& container, std::function<nri::Adjustment()> decision,
                                      std::chrono::steady_clock::time_point deadline) {
  const std::uint64_t asked = kernel::monotonic_now();
  const auto answer = std::make_shared<std::promise<nri::Adjustment>>();
  std::future<nri::Adjustment> adjustment = answer->get_future();
  loop_.post([decision = std::move(decision), answer] { answer->set_value(decision()); });
  if (adjustment.wait_until(deadline) == std::future_status::ready) {
    return adjustment.get();
  }
  loop_.post([this, container, asked] {
    if (manager_) {
      manager_->expect_write_of_engine(host::owner_of(container), asked);
    }
  });
  log_passed(container, "no answer in time");
  return {};
}

// Until it is connected again, an engine writes what its clients ask for. Each attempt to connect comes here again.
void ManagerThread::lose_engine() {
  const std::uint64_t now = kernel::monotonic_now();
  lost_at_ = lost_at_.value_or(now);
  if (now - *lost_at_ < kLongestLoss) {
    expect_writes_since(*lost_at_);
  }
}

// To all containers that the engine has told us of.
void ManagerThread::expect_writes_since(std::uint64_t since) {
  for (const host::CpuTenant& tenant : tenants_) {
    if (manager_ && created_.contains(tenant.container.id.value)) {
      manager_->expect_write_of_engine(tenant.tenant.owner, since);
    }
  }
}

// The engine writes what it is answered a moment later, when the pool may be another, or its own cpuset.
nri::Adjustment ManagerThread::adjustment_to(const nri::Container& container,
                                             const Result<Manager::Prepared>& placement) {
  manager_->expect_write_of_engine(host::owner_of(container), kernel::monotonic_now());
  if (!placement) {
    log_passed(container, placement.error().message);
    return {};
  }
  return {.cpus = to_string(placement->cpus),
          .memory_nodes = placement->memory_nodes,
          .has_no_quota = placement->is_exclusive,
          .devices = {}};
}

void ManagerThread::log_passed(const nri::Container& container, const std::string& why) const {
  settings_.log("nri-passed container=" + quote(container.pod_name + "/" + container.name) + " error=" + quote(why),
                true);
}

void ManagerThread::expect(const nri::Container& container) {
  if (manager_) {
    const cpu::Owner owner = host::owner_of(container);
    manager_->expect(owner);
    expected_[owner] = {container.id, kernel::monotonic_now()};
  }
}

// One that runs is a tenant; one whose creation failed never becomes one.
void ManagerThread::forget_expected(std::uint64_t now) {
  std::erase_if(created_, [&](const auto& entry) {
    return now - entry.second.since > kCreationTime && std::ranges::none_of(tenants_, [&](const host::CpuTenant& one) {
             return one.container.id.value == entry.first;
           });
  });
  std::erase_if(expected_, [&](const auto& entry) {
    const bool is_due = now - entry.second.since > kCreationTime;
    if (is_due && manager_) {
      manager_->forget(entry.first);
    }
    return is_due;
  });
}

void ManagerThread::load_pinned() {
  pinned_ = read_pinned(kDirectory);
  for (const auto& [id, cpus] : pinned_) {
    created_[id] = {.time = {}, .pinned = cpus, .since = kernel::monotonic_now()};
  }
}

// What Synchronize says of CPUs does not tell by whom they were given, so that it is kept in a file.
void ManagerThread::save_pinned() {
  Pinned pinned;
  for (const auto& [id, created] : created_) {
    if (created.pinned) {
      pinned[id] = *created.pinned;
    }
  }
  if (pinned == pinned_) {
    return;
  }
  if (const Result<void> written = write_pinned(kDirectory, pinned); !written) {
    settings_.log("cpus-pinned error=" + quote(written.error().message), true);
  }
  pinned_ = std::move(pinned);
}

// Whatever goes wrong, the container starts as the engine would start it. On NRI's thread: devices do not wait for the
// manager. The decision has what is left of the limit.
nri::Adjustment ManagerThread::create(const nri::Container& container) {
  const std::shared_ptr<const config::Config> config = latest_config();
  const auto asked = std::chrono::steady_clock::now();
  cpu::Tenant tenant = host::tenant_of(container);
  const bool needs_devices = tenant.request || !container.devices.empty();
  const DeviceReader::Devices read = needs_devices ? devices_->read_until(asked + kDeviceLimit, config) : nullptr;
  const std::vector<nri::Device> missing =
      read ? host::missing_nodes_of(container, read->inventory, config->classes) : std::vector<nri::Device>();
  for (const nri::Device& device : missing) {
    settings_.log(
        "nri-completed container=" + quote(container.pod_name + "/" + container.name) + " device=" + device.path,
        false);
  }
  if (tenant.request && read) {
    tenant.device_nodes = host::nodes_near(host_, container, *tenant.request, *read, config->classes);
  }
  nri::Adjustment adjustment =
      decide(container, [this, container, tenant] { return place(container, tenant); }, asked + kAnswerLimit);
  adjustment.devices = missing;
  return adjustment;
}

nri::Adjustment ManagerThread::place(const nri::Container& container, const cpu::Tenant& tenant) {
  Created& created = created_[container.id] = {container.time, std::nullopt, kernel::monotonic_now()};
  // The engine refuses a container for which two plugins want CPUs.
  if (!container.cpus.empty()) {
    created.pinned = cpu::parse_cpu_set(container.cpus).value_or(cpu::CpuSet());
    save_pinned();
    log_passed(container, "its creator, or another NRI plugin, gives it the CPUs " + container.cpus);
    return {};
  }
  if (!manager_ || !has_census_) {  // where the others run is not known yet
    return {};
  }
  expect(container);
  cpu::Tenant placed = tenant;
  placed.confined = manager_->allowed_in(container::cgroup_of_parent(container.cgroup_parent));
  return adjustment_to(container, manager_->prepare(tenants_, placed));
}

// A pod that is resized in place gets more CPUs, or keeps some of those that it has.
nri::Adjustment ManagerThread::update(const nri::Container& container) {
  look_again();
  const auto known = created_.find(container.id);
  if (!manager_ || (known != created_.end() && known->second.pinned)) {
    return {};
  }
  const auto tenant = std::ranges::find(
      tenants_, container.id, [](const host::CpuTenant& one) -> const std::string& { return one.container.id.value; });
  if (tenant == tenants_.end() || !has_census_) {
    return adjustment_to(container, manager_->placement_of(host::owner_of(container)));
  }
  created_[container.id] = {container.time, std::nullopt, kernel::monotonic_now()};
  const std::optional<cpu::CpuRequest> before = tenant->tenant.request;
  set_cpu_time(*tenant, container.time);
  return adjustment_to(container, manager_->resize(tenants_, tenant->tenant, before));
}

// What the engine has said about a container is newer than its bundle. Where CPUs are another program's matter it has
// none of its own, and stays on those of the pool that it was given.
void ManagerThread::heed_engine(host::CpuTenant& tenant) const {
  const auto known = created_.find(tenant.container.id.value);
  if (known == created_.end()) {
    return;
  }
  set_cpu_time(tenant, known->second.time);
  if (known->second.pinned) {
    tenant.tenant.request.reset();
    tenant.tenant.confined = known->second.pinned;
  }
}

void ManagerThread::synchronize(const std::vector<nri::Container>& containers) {
  for (const nri::Container& container : containers) {
    if (!container.has_ended) {
      expect(container);
      const auto known = created_.try_emplace(container.id, Created{container.time, std::nullopt, 0}).first;
      known->second.since = kernel::monotonic_now();
      if (known->second.pinned) {  // the file has no more than its CPUs
        known->second.time = container.time;
      }
    }
  }
  expect_writes_since(lost_at_.value_or(kernel::monotonic_now()));
  lost_at_.reset();
}

// An engine may tell no more of it than the id.
cpu::Owner ManagerThread::owner_by_id(const nri::Container& container) const {
  for (const host::CpuTenant& tenant : tenants_) {
    if (tenant.container.id.value == container.id) {
      return tenant.tenant.owner;
    }
  }
  const auto expected =
      std::ranges::find_if(expected_, [&](const auto& entry) { return entry.second.id == container.id; });
  return expected == expected_.end() ? host::owner_of(container) : expected->first;
}

// A container that kubelet starts again has the name of the one before, whose end may be reported late.
void ManagerThread::stop(const nri::Container& container) {
  const cpu::Owner owner = owner_by_id(container);
  stopped_at_[container.id] = kernel::monotonic_now();
  const auto expected = expected_.find(owner);
  std::erase_if(tenants_, [&](const host::CpuTenant& tenant) { return tenant.container.id.value == container.id; });
  created_.erase(container.id);
  const bool has_successor =
      (expected != expected_.end() && expected->second.id != container.id) ||
      std::ranges::any_of(tenants_, [&](const host::CpuTenant& tenant) { return tenant.tenant.owner == owner; });
  if (!manager_ || !has_census_ || has_successor) {
    return;
  }
  expected_.erase(owner);
  manager_->forget(owner);
  loop_.post([this, owner] { reconcile({.census_at = {}, .owners = {owner}}); });
}

}  // namespace hf::cpus
