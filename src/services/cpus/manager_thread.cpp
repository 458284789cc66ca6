#include "services/cpus/manager_thread.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <utility>

#include <fcntl.h>

#include "core/base/text.h"
#include "host/inventory.h"
#include "host/nri_container.h"
#include "host/writer.h"
#include "kernel/files/clock.h"
#include "kernel/files/file.h"
#include "kernel/process/process.h"
#include "kernel/process/thread.h"
#include "services/cpus/irqs.h"

namespace hf::cpus {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kPause = 10 * kSecond;  // between two reconciliations without an event, as kubelet has it
constexpr std::uint64_t kShortestPause = kSecond / 20;  // where other programs write to cpusets again and again
constexpr std::chrono::milliseconds kLockLimit{200};
constexpr std::chrono::milliseconds kAnswerLimit{50};   // an engine waits for it
constexpr std::uint64_t kCreationTime = 120 * kSecond;  // from a container's creation to its first process

void place(nri::Adjustment& adjustment, const Manager::Prepared& placement) {
  adjustment.cpus = to_string(placement.cpus);
  adjustment.memory_nodes = placement.memory_nodes;
  adjustment.has_no_quota = placement.is_exclusive;
}

}  // namespace

ManagerThread::ManagerThread(const kernel::Host& host, ThreadSettings settings)
    : host_(host),
      settings_(std::move(settings)),
      latest_config_(std::make_shared<const config::Config>(settings_.config)),
      thread_([this] { work(); }) {}

ManagerThread::~ManagerThread() {
  loop_.post([this] { stops_ = true; });
  thread_.join();
}

std::shared_ptr<const config::Config> ManagerThread::latest_config() {
  const std::scoped_lock lock(config_mutex_);
  return latest_config_;
}

void ManagerThread::set_config(const config::Config& config) {
  {
    const std::scoped_lock lock(config_mutex_);
    latest_config_ = std::make_shared<const config::Config>(config);
  }
  loop_.post([this, config] {
    const config::Config before = std::exchange(settings_.config, config);
    if (before.nri != config.nri) {
      nri_.reset();
    }
    if (before.cpus != config.cpus) {
      placements_.reset();
      manager_.reset();
      if (writes_) {
        loop_.unwatch(writes_->descriptor());
        writes_.reset();
      }
      has_census_ = false;
      due_ = 0;
      publish();
      give_back_irqs();
    }
    request_census();
  });
}

// Containers keep their CPUs when the manager is switched off, but nobody would move the interrupts back later.
void ManagerThread::give_back_irqs() {
  if (settings_.config.cpus.manages) {
    return;
  }
  if (const Result<void> moved = keep_irqs_away(host_, kDirectory, {}); !moved) {
    settings_.log("irqs error=" + quote(moved.error().message), true);
  }
}

void ManagerThread::take_census(const std::vector<host::DiscoveredContainer>& discovered, std::uint64_t began) {
  Tenants tenants = host::cpu_tenants_of(discovered);
  // In the thread of the caller, which may wait for files.
  host::locate_devices(host_, *latest_config(), discovered, tenants);
  loop_.post([this, began, tenants = std::move(tenants)]() mutable { adopt(std::move(tenants), began); });
}

void ManagerThread::add(const host::DiscoveredContainer& discovered) {
  const std::shared_ptr<const config::Config> config = latest_config();
  Tenants added = config->manages_cpus() ? host::cpu_tenants_of({discovered}) : Tenants();
  if (added.empty()) {
    return;
  }
  host::locate_devices(host_, *config, {discovered}, added);
  loop_.post([this, tenant = std::move(added.front())]() mutable {
    std::erase_if(tenants_, [&](const host::CpuTenant& known) { return known.tenant.id == tenant.tenant.id; });
    added_at_[tenant.tenant.id] = kernel::monotonic_now();
    tenants_.push_back(std::move(tenant));
    reconcile();
  });
}

// A census that began before a container was added may not have it.
void ManagerThread::adopt(Tenants tenants, std::uint64_t began) {
  for (host::CpuTenant& known : tenants_) {
    const auto added = added_at_.find(known.tenant.id);
    const bool is_in_census = std::ranges::any_of(
        tenants, [&](const host::CpuTenant& tenant) { return tenant.tenant.id == known.tenant.id; });
    if (!is_in_census && added != added_at_.end() && began < added->second) {
      tenants.push_back(std::move(known));
    }
  }
  std::erase_if(added_at_, [began](const auto& entry) { return began >= entry.second; });
  tenants_ = std::move(tenants);
  has_census_ = true;
  reconcile({.census_at = began, .owners = {}});
}

void ManagerThread::set_census_request(std::function<void()> request) {
  const std::scoped_lock lock(request_mutex_);
  request_ = std::move(request);
}

void ManagerThread::request_census() {
  const std::scoped_lock lock(request_mutex_);
  if (request_) {
    request_();
  }
}

void ManagerThread::open(std::uint64_t now) {
  ManagerSettings settings;
  settings.cpus = settings_.config.cpus;
  settings.log = settings_.log;
  settings.clock = kernel::monotonic_now;
  settings.lock_limit = kLockLimit;
  Result<Manager> opened = Manager::open(host_, std::move(settings));
  due_ = now + kPause;
  if (opened) {
    manager_.emplace(*std::move(opened));
    problem_.clear();
    settings_.log("cpus-managed", false);
    watch_writes();
    open_placements();
  } else if (problem_ != opened.error().message) {
    problem_ = opened.error().message;
    settings_.log("cpus-not-managed error=" + quote(problem_), true);
    publish();
  }
}

void ManagerThread::publish() {
  if (!settings_.config.cpus.manages) {
    settings_.publish(nullptr);
    return;
  }
  auto status = std::make_shared<report::CpuStatus>(manager_ ? manager_->status() : report::CpuStatus());
  status->problem = problem_;
  settings_.publish(std::move(status));
}

// Without it containers start at once, and are moved as soon as they are seen.
void ManagerThread::open_placements() {
  placements_.reset();
  (void)kernel::make_directories(AT_FDCWD, kDirectory);
  Result<std::unique_ptr<PlacementServer>> opened = PlacementServer::open(
      loop_, {.socket = host::kPlacementSocket,
              .is_placed = [this](const std::string& container) { return is_placed(container); }});
  if (opened) {
    placements_ = *std::move(opened);
  } else {
    settings_.log("cpus-not-at-creation error=" + quote(opened.error().message), true);
  }
}

// One that is started again has the id of the one before, which the last census may still have.
bool ManagerThread::is_placed(const std::string& container) const {
  return !manager_ || std::ranges::any_of(tenants_, [&](const host::CpuTenant& one) {
    if (one.container.id.value != container) {
      return false;
    }
    const Result<kernel::Process> first = kernel::read_process(host_, one.container.init);
    return first && !first->has_ended && first->started_at == one.container.started_ticks;
  });
}

// Others who change a cpuset are seen at once and named. Without fanotify the next reconciliation finds the change.
void ManagerThread::watch_writes() {
  if (writes_) {
    return;
  }
  Result<kernel::CgroupWrites> opened = kernel::CgroupWrites::open(host_, manager_->cpuset_mount());
  const Result<void> watched =
      opened ? loop_.watch(opened->descriptor(), [this] { take_writes(); }) : std::unexpected(opened.error());
  if (watched) {
    writes_.emplace(*std::move(opened));
  } else {
    settings_.log("cpus-writers-unknown error=" + quote(watched.error().message), true);
  }
}

void ManagerThread::take_writes() {
  std::vector<kernel::CgroupWrite> writes;
  if (writes_) {  // not switched off by a task of the same round
    writes_->take(writes);
  }
  bool is_ours = false;
  std::set<std::uint64_t> files;
  for (const kernel::CgroupWrite& write : writes) {
    if (!files.insert(write.file).second) {
      continue;
    }
    const auto identify = [&] {
      container::Writer writer;
      writer.pid = write.pid;
      host::identify(host_, writer);
      return title_of(writer);
    };
    is_ours = (manager_ && !write.lost && manager_->note_writer(write.file, identify)) || is_ours;
  }
  if (is_ours) {
    due_ = std::min(due_, reconciled_at_ + kShortestPause);
  }
}

void ManagerThread::reconcile(const Manager::Ended& ended) {
  const std::uint64_t now = kernel::monotonic_now();
  if (!manager_) {
    return;
  }
  reconciled_at_ = now;
  const Result<void> done = manager_->reconcile(tenants_, ended);
  due_ = now + (manager_->wants_census() ? kSecond : kPause);
  if (!done) {
    const bool is_refused = done.error().code == std::errc::operation_not_permitted;
    if (problem_ != done.error().message) {
      problem_ = done.error().message;
      settings_.log("cpus error=" + quote(problem_), true);
    }
    if (is_refused) {
      manager_.reset();  // kubelet has begun to assign CPUs itself
    }
  } else {
    problem_.clear();
  }
  publish();
  if (placements_) {
    placements_->answer();
  }
}

// ---- NRI ----

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

// On NRI's thread. Without an answer in time the container starts as the engine would start it; it is moved later.
nri::Adjustment ManagerThread::adjust(const nri::Container& container, Decide decide) {
  const auto answer = std::make_shared<std::promise<nri::Adjustment>>();
  std::future<nri::Adjustment> adjustment = answer->get_future();
  loop_.post([this, container, decide, answer] { answer->set_value((this->*decide)(container)); });
  if (adjustment.wait_for(kAnswerLimit) == std::future_status::ready) {
    return adjustment.get();
  }
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

std::uint64_t ManagerThread::next_due() const {
  const std::uint64_t due = is_on() ? due_ : kernel::EventLoop::kNever;
  return std::min(due, placements_ ? placements_->next_due() : due);
}

void ManagerThread::work() {
  kernel::name_thread("hf-cpus");
  const config::Config& config = settings_.config;
  give_back_irqs();
  while (!stops_) {
    const std::uint64_t now = kernel::monotonic_now();
    if (config.nri.is_enabled && !nri_) {
      nri_.emplace(config.nri, nri_handlers(), settings_.log);
    }
    forget_expected(now);
    if (config.cpus.manages && !manager_ && now >= due_) {
      open(now);
    } else if (manager_ && now >= due_) {
      manager_->wants_census() ? request_census() : reconcile();
      due_ = std::max(due_, now + kSecond);
    } else if (now >= due_) {
      due_ = now + kPause;
    }
    if (placements_) {
      placements_->work(now);
    }
    loop_.run_until(next_due());
  }
  nri_.reset();
  placements_.reset();
}

}  // namespace hf::cpus
