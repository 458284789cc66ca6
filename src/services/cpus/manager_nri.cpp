// What ManagerThread answers to NRI.
#include <chrono>
#include <future>
#include <memory>

#include "core/base/text.h"
#include "host/inventory.h"
#include "host/nri_container.h"
#include "kernel/files/clock.h"
#include "services/cpus/manager_thread.h"

namespace hf::cpus {
namespace {

constexpr std::chrono::milliseconds kAnswerLimit{50};     // an engine waits for it
constexpr std::uint64_t kCreationTime = 120'000'000'000;  // from a container's creation to its first process

void place(nri::Adjustment& adjustment, const Manager::Prepared& placement) {
  adjustment.cpus = to_string(placement.cpus);
  adjustment.memory_nodes = placement.memory_nodes;
  adjustment.has_no_quota = placement.is_exclusive;
}

}  // namespace

nri::Handlers ManagerThread::nri_handlers() {
  nri::Handlers handlers;
  handlers.configured = [this](const std::string& engine) {
    settings_.log("nri-connected engine=" + quote(printable(engine)), false);
  };
  handlers.synchronize = [this](const std::vector<nri::Container>& containers) {
    loop_.post([this, containers] { synchronize(containers); });
  };
  handlers.create = [this](const nri::Container& container) { return adjust(container, &ManagerThread::create); };
  handlers.update = [this](const nri::Container& container) { return adjust(container, &ManagerThread::update); };
  handlers.stopped = [this](const nri::Container& container) { loop_.post([this, container] { stop(container); }); };
  return handlers;
}

// On NRI's thread. Without an answer in time the container gets the cpuset that the engine would give it; it is moved
// later, and the engine is not taken for another program that wants it elsewhere.
nri::Adjustment ManagerThread::adjust(const nri::Container& container, Decide decide) {
  const auto answer = std::make_shared<std::promise<nri::Adjustment>>();
  std::future<nri::Adjustment> adjustment = answer->get_future();
  loop_.post([this, container, decide, answer] { answer->set_value((this->*decide)(container)); });
  if (adjustment.wait_for(kAnswerLimit) == std::future_status::ready) {
    return adjustment.get();
  }
  loop_.post([this, container] {
    if (manager_) {
      manager_->expect_write_of_engine(host::owner_of(container));
    }
  });
  log_passed(container, "no answer in time");
  return {};
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
  std::erase_if(expected_, [&](const auto& entry) {
    const bool is_due = now - entry.second.since > kCreationTime;
    if (is_due && manager_) {
      manager_->forget(entry.first);
    }
    return is_due;
  });
}

// Whatever goes wrong, the container starts as the engine would start it.
nri::Adjustment ManagerThread::create(const nri::Container& container) {
  nri::Adjustment adjustment;
  const device::Inventory inventory = container.devices.empty()
                                          ? device::Inventory()
                                          : host::take_inventory(host_, settings_.config, host::Libraries::leave);
  adjustment.devices = host::missing_nodes_of(container, inventory, settings_.config.classes);
  for (const nri::Device& device : adjustment.devices) {
    settings_.log(
        "nri-completed container=" + quote(container.pod_name + "/" + container.name) + " device=" + device.path,
        false);
  }
  if (!manager_ || !has_census_) {  // where the others run is not known yet
    return adjustment;
  }
  expect(container);
  const Result<Manager::Prepared> prepared = manager_->prepare(tenants_, host::tenant_of(container, inventory));
  if (!prepared) {
    log_passed(container, prepared.error().message);
    return adjustment;
  }
  place(adjustment, *prepared);
  return adjustment;
}

nri::Adjustment ManagerThread::update(const nri::Container& container) {
  nri::Adjustment adjustment;
  if (manager_) {
    place(adjustment, manager_->placement_of(host::owner_of(container)));
  }
  return adjustment;
}

void ManagerThread::synchronize(const std::vector<nri::Container>& containers) {
  for (const nri::Container& container : containers) {
    if (!container.has_ended) {
      expect(container);
    }
  }
}

// A container that kubelet starts again has the name of the one before, whose end may be reported late.
void ManagerThread::stop(const nri::Container& container) {
  const cpu::Owner owner = host::owner_of(container);
  const auto expected = expected_.find(owner);
  std::erase_if(tenants_, [&](const host::CpuTenant& tenant) { return tenant.container.id.value == container.id; });
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
