#include "services/cpus/manager_thread.h"

#include <algorithm>

#include "core/base/text.h"
#include "kernel/files/clock.h"
#include "kernel/process/thread.h"

namespace hf::cpus {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kPause = 10 * kSecond;  // between two reconciliations without an event, as kubelet has it
// A census that began before a container was added does not have it.
constexpr std::uint64_t kCensusTime = 5 * kSecond;

}  // namespace

ManagerThread::ManagerThread(const kernel::Host& host, ThreadSettings settings)
    : host_(host), settings_(std::move(settings)), thread_([this] { work(); }) {}

ManagerThread::~ManagerThread() {
  loop_.post([this] { stops_ = true; });
  thread_.join();
}

// Only few containers ask for CPUs: their devices are located in the thread of the caller, which may wait for files.
host::CpuTenant ManagerThread::tenant_with_devices(const host::DiscoveredContainer& discovered,
                                                   host::CpuTenant tenant) const {
  host::locate_devices(host_, settings_.config, discovered, tenant);
  return tenant;
}

void ManagerThread::take_census(const std::vector<host::DiscoveredContainer>& discovered) {
  const std::uint64_t now = kernel::monotonic_now();
  Tenants tenants = host::cpu_tenants_of(discovered);
  for (host::CpuTenant& tenant : tenants) {
    const auto found = std::ranges::find(discovered, tenant.tenant.id,
                                         [](const host::DiscoveredContainer& one) { return one.container.id.value; });
    if (tenant.tenant.request && found != discovered.end()) {
      tenant = tenant_with_devices(*found, std::move(tenant));
    }
  }
  loop_.post([this, now, tenants = std::move(tenants)]() mutable { adopt(std::move(tenants), now); });
}

void ManagerThread::add(const host::DiscoveredContainer& discovered) {
  std::optional<host::CpuTenant> tenant = host::cpu_tenant_of(discovered);
  if (!tenant) {
    return;
  }
  loop_.post([this, tenant = tenant_with_devices(discovered, *std::move(tenant))]() mutable {
    std::erase_if(tenants_, [&](const host::CpuTenant& known) { return known.tenant.id == tenant.tenant.id; });
    added_at_[tenant.tenant.id] = kernel::monotonic_now();
    tenants_.push_back(std::move(tenant));
    reconcile(cpu::Others::kept);
  });
}

void ManagerThread::adopt(Tenants tenants, std::uint64_t taken_at) {
  for (host::CpuTenant& known : tenants_) {
    const auto added = added_at_.find(known.tenant.id);
    const bool is_in_census = std::ranges::any_of(
        tenants, [&](const host::CpuTenant& tenant) { return tenant.tenant.id == known.tenant.id; });
    if (!is_in_census && added != added_at_.end() && taken_at < added->second + kCensusTime) {
      tenants.push_back(std::move(known));
    }
  }
  std::erase_if(added_at_, [&](const auto& entry) { return taken_at >= entry.second + kCensusTime; });
  tenants_ = std::move(tenants);
  reconcile(cpu::Others::removed);
}

void ManagerThread::open(std::uint64_t now) {
  ManagerSettings settings;
  settings.cpus = settings_.config.cpus;
  settings.log = settings_.log;
  settings.clock = kernel::monotonic_now;
  Result<Manager> opened = Manager::open(host_, std::move(settings));
  due_ = now + kPause;
  if (opened) {
    manager_.emplace(*std::move(opened));
    problem_.clear();
    settings_.log("cpus-managed", false);
  } else if (problem_ != opened.error().message) {
    problem_ = opened.error().message;
    settings_.log("cpus-not-managed error=" + quote(problem_), true);
    report::CpuStatus status;
    status.problem = problem_;
    settings_.publish(status);
  }
}

void ManagerThread::reconcile(cpu::Others others) {
  const std::uint64_t now = kernel::monotonic_now();
  if (!manager_) {
    return;
  }
  due_ = now + kPause;
  if (const Result<void> done = manager_->reconcile(tenants_, others); !done) {
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
  report::CpuStatus status = manager_ ? manager_->status() : report::CpuStatus();
  status.problem = problem_;
  settings_.publish(status);
}

void ManagerThread::work() {
  kernel::name_thread("hf-cpus");
  while (!stops_) {
    const std::uint64_t now = kernel::monotonic_now();
    if (!manager_ && now >= due_) {
      open(now);
    } else if (now >= due_) {
      reconcile(cpu::Others::kept);
    }
    loop_.run_until(due_);
  }
}

}  // namespace hf::cpus
