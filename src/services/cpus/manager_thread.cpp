#include "services/cpus/manager_thread.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include <fcntl.h>

#include "core/base/text.h"
#include "host/inventory.h"
#include "host/writer.h"
#include "kernel/files/clock.h"
#include "kernel/files/file.h"
#include "kernel/process/process.h"
#include "kernel/process/thread.h"
#include "services/cpus/irqs.h"
#include "services/cpus/stand_down.h"

namespace hf::cpus {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kPause = 10 * kSecond;  // between two reconciliations without an event, as kubelet has it
constexpr std::uint64_t kSettleTime = kSecond;  // for a runtime to write all that it writes
constexpr std::uint64_t kShortestPause = kSecond / 20;  // where other programs write to cpusets again and again
constexpr std::chrono::milliseconds kLockLimit{200};

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
      restore_irqs();
    }
    if (devices_) {
      (void)devices_->read_until(std::chrono::steady_clock::now(), latest_config());
    }
    request_census();
  });
}

// Containers keep their CPUs when the manager is switched off. Interrupts return: no one else would move them back.
void ManagerThread::restore_irqs() {
  if (settings_.config.cpus.manages) {
    return;
  }
  if (const Result<void> moved = keep_irqs_away(host_, kDirectory, {}); !moved) {
    settings_.log("irqs error=" + quote(moved.error().message), true);
  }
}

// Kubelet assigns CPUs itself.
void ManagerThread::leave_to_kubelet() {
  if (const Result<void> done = stand_down(host_, kDirectory); !done) {
    settings_.log("cpus-stand-down error=" + quote(done.error().message), true);
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
    heed_engine(tenant);
    added_at_[tenant.tenant.id] = kernel::monotonic_now();
    tenants_.push_back(std::move(tenant));
    look_again();
    if (has_census_) {  // before, the others would be taken for ended
      reconcile();
    }
  });
}

// A census that began before a container was added may not have it, and may have one that was stopped meanwhile. Nor
// has it one that has moved its first process to another cgroup.
void ManagerThread::adopt(Tenants tenants, std::uint64_t began) {
  std::erase_if(tenants, [&](const host::CpuTenant& tenant) {
    const auto stopped = stopped_at_.find(tenant.container.id.value);
    return stopped != stopped_at_.end() && began < stopped->second;
  });
  std::erase_if(stopped_at_, [began](const auto& entry) { return began >= entry.second; });
  has_missed_ = false;
  for (host::CpuTenant& known : tenants_) {
    const auto added = added_at_.find(known.tenant.id);
    const bool is_in_census = std::ranges::any_of(
        tenants, [&](const host::CpuTenant& tenant) { return tenant.tenant.id == known.tenant.id; });
    const bool is_newer = added != added_at_.end() && began < added->second;
    const bool is_missed = !is_in_census && !is_newer && manager_ && manager_->is_running(known);
    has_missed_ = has_missed_ || is_missed;
    if (is_missed || (!is_in_census && is_newer)) {
      tenants.push_back(std::move(known));
    }
  }
  std::erase_if(added_at_, [began](const auto& entry) { return began >= entry.second; });
  tenants_ = std::move(tenants);
  std::ranges::for_each(tenants_, [this](host::CpuTenant& tenant) { heed_engine(tenant); });
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
  settings.kubelet_state = settings_.config.kube.root_dir + "/cpu_manager_state";
  settings.log = settings_.log;
  settings.clock = kernel::monotonic_now;
  settings.lock_limit = kLockLimit;
  Result<Manager> opened = Manager::open(host_, std::move(settings));
  due_ = now + kPause;
  if (opened) {
    manager_.emplace(*std::move(opened));
    for (const auto& [owner, expected] : expected_) {
      manager_->expect(owner);
    }
    problem_.clear();
    due_ = has_census_ ? now : due_;  // kubelet assigned CPUs itself until now
    settings_.log("cpus-managed", false);
    watch_writes();
    open_placements();
  } else if (problem_ != opened.error().message) {
    problem_ = opened.error().message;
    settings_.log("cpus-not-managed error=" + quote(problem_), true);
    if (opened.error().code == std::errc::operation_not_permitted) {
      leave_to_kubelet();
    }
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
  bool is_quota = false;
  std::set<std::uint64_t> files;
  for (const kernel::CgroupWrite& write : writes) {
    if (!files.insert(write.file).second) {
      continue;
    }
    const auto identify = [&] {
      container::Writer writer;
      writer.pid = write.pid;
      host::identify(host_, writer);
      return program_title_of(writer);
    };
    is_ours = (manager_ && !write.lost && manager_->note_writer(write.file, identify)) || is_ours;
    is_quota = is_quota || write.lost || (manager_ && manager_->is_quota(write.file));
  }
  if (is_ours || is_quota) {
    look_again();
  }
  if (is_ours) {
    due_ = std::min(due_, reconciled_at_ + kShortestPause);
  }
}

// A runtime writes the quota of CPU time after the cpuset, at creation and at each update: what is seen of the cpuset
// alone may be too early.
void ManagerThread::look_again() {
  if (!has_census_) {  // the first one is followed by a reconciliation
    return;
  }
  again_at_ = kernel::monotonic_now() + kSettleTime;
  due_ = std::min(due_, again_at_);
}

void ManagerThread::reconcile(const Manager::Ended& ended) {
  const std::uint64_t now = kernel::monotonic_now();
  if (!manager_) {
    return;
  }
  reconciled_at_ = now;
  const Result<void> done = manager_->reconcile(tenants_, ended);
  due_ = now + (manager_->wants_census() ? kSecond : kPause);
  if (again_at_ > now) {
    due_ = std::min(due_, again_at_);
  }
  if (!done) {
    const bool is_refused = done.error().code == std::errc::operation_not_permitted;
    if (problem_ != done.error().message) {
      problem_ = done.error().message;
      settings_.log("cpus error=" + quote(problem_), true);
    }
    if (is_refused) {
      manager_.reset();
      leave_to_kubelet();
    }
  } else {
    problem_.clear();
  }
  publish();
  if (placements_) {
    placements_->answer();
  }
}

std::uint64_t ManagerThread::next_due() const {
  const std::uint64_t due = is_on() ? due_ : kernel::EventLoop::kNever;
  return std::min(due, placements_ ? placements_->next_due() : due);
}

// What others have written is corrected at once, also while a census is awaited.
void ManagerThread::work_on_cpus(std::uint64_t now) {
  const bool wants_census = !has_census_ || has_missed_ || manager_->wants_census();
  if (has_census_) {
    reconcile();
  }
  if (wants_census && now - census_requested_at_ >= kSecond) {
    census_requested_at_ = now;
    request_census();
  }
  if (!manager_ || !has_census_) {
    due_ = std::max(due_, now + kSecond);
  }
}

void ManagerThread::work() {
  kernel::name_thread("hf-cpus");
  const config::Config& config = settings_.config;
  restore_irqs();
  load_pinned();
  while (!stops_) {
    const std::uint64_t now = kernel::monotonic_now();
    if (config.nri.is_enabled && !nri_) {
      lost_at_ = now;
      if (!devices_) {
        devices_.emplace([this](const config::Config& latest) { return host::read_host_devices(host_, latest); });
      }
      // The first container that is created waits for no cold cache.
      (void)devices_->read_until(std::chrono::steady_clock::now(), latest_config());
      nri_.emplace(config.nri, nri_handlers(), settings_.log);
    }
    forget_expected(now);
    save_pinned();
    if (config.cpus.manages && !manager_ && now >= due_) {
      open(now);
    } else if (manager_ && now >= due_) {
      work_on_cpus(now);
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
