#include "services/guard/upkeep.h"

#include <algorithm>
#include <thread>

#include "adapters/systemd/unit.h"
#include "core/base/text.h"
#include "core/bpf/producer.h"
#include "kernel/cgroup/device_v2.h"
#include "kernel/cgroup/exchange_note.h"
#include "kernel/cgroup/observe.h"
#include "kernel/container/container_node.h"

namespace hf::guard {
namespace {

using container::Mode;
using report::Action;

constexpr std::chrono::milliseconds kBusLimit{3000};
constexpr std::chrono::milliseconds kNodeLimit{2000};
constexpr std::chrono::seconds kBusPause{10};
constexpr std::chrono::milliseconds kLockPause{5};
constexpr int kMostLockTries = 20;

std::string make_node(const kernel::Host& host, const GuardedContainer& guarded, const container::NodeState& node) {
  const kernel::NewNode wanted{node.owed->path, *node.owed->device, node.owed->permissions};
  const Result<void> made = kernel::make_node_in(host, *guarded.handle, wanted, kNodeLimit);
  return made ? std::string() : made.error().message;
}

VisitResult upkeep_result(const GuardedContainerPtr& guarded, Action action, std::string step = {},
                          std::string error = {}) {
  VisitResult result;
  result.guarded = guarded;
  result.action = action;
  if (!step.empty()) {
    result.steps.push_back(std::move(step));
  }
  result.error = std::move(error);
  result.is_upkeep = true;
  return result;
}

}  // namespace

bool Upkeep::is_first_try(const GuardedContainer& guarded, const std::string& what) {
  return tried_.insert(guarded.container.id.value + " " + std::to_string(guarded.container.started_ticks) + " " + what)
      .second;
}

systemd::Bus* Upkeep::bus() {
  if (bus_ && bus_->is_connected()) {
    return &*bus_;
  }
  bus_.reset();
  const auto now = std::chrono::steady_clock::now();
  if (!systemd::is_running(host_) || now < retry_bus_at_) {
    return nullptr;
  }
  retry_bus_at_ = now + kBusPause;
  Result<systemd::Bus> opened = systemd::Bus::open(host_, kBusLimit);
  if (!opened) {
    return nullptr;
  }
  bus_.emplace(*std::move(opened));
  (void)bus_->watch_reloads();
  return &*bus_;
}

int Upkeep::descriptor() {
  systemd::Bus* connection = bus();
  return connection == nullptr ? -1 : connection->descriptor();
}

bool Upkeep::take_reload() {
  const std::vector<bool> reloads = bus_ ? bus_->take_reloads() : std::vector<bool>();
  return std::ranges::find(reloads, false) != reloads.end();
}

void Upkeep::harden(const GuardedContainerPtr& guarded, std::vector<VisitResult>& results) {
  if (guarded->to_harden.empty() || guarded->mode < Mode::harden || !is_first_try(*guarded, "harden")) {
    return;
  }
  std::vector<systemd::DeviceEntry> entries;
  std::vector<std::string> paths;
  for (const container::OwedNode& node : guarded->to_harden) {
    const device::Request request = request_for(node);
    entries.push_back({request.device, request.access});
    paths.push_back(node.path);
  }
  if (!guarded->handle->check()) {
    return;  // a unit of this name may belong to another container by now
  }
  systemd::Bus* connection = bus();
  const Result<void> allowed = connection == nullptr ? fail(std::errc::not_connected, "systemd does not answer")
                                                     : connection->allow_devices(*guarded->container.unit, entries);
  results.push_back(upkeep_result(guarded, Action::hardened,
                                  "told systemd that " + *guarded->container.unit + " may have " + join(paths, ", "),
                                  allowed ? "" : allowed.error().message));
}

void Upkeep::recreate_nodes(const InsideView& view, std::vector<VisitResult>& results) {
  const GuardedContainerPtr& guarded = view.guarded;
  VisitResult result = upkeep_result(guarded, Action::recreated);
  for (const container::NodeState& node : view.to_recreate()) {
    if (!is_first_try(*guarded, "recreate " + node.owed->path + " " + to_string(*node.owed->device))) {
      continue;
    }
    const std::string error = make_node(host_, *guarded, node);
    const char* const again = node.owed->is_completion ? " as " : " again as ";
    result.steps.push_back("created " + node.owed->path + again + to_string(*node.owed->device) + ": " +
                           node.diagnosis.text);
    result.error += (result.error.empty() || error.empty() ? "" : "; ") + error;
  }
  if (!result.steps.empty()) {
    results.push_back(std::move(result));
  }
}

// Also unlocks, where the policy no longer asks for a lock: only a program that holdfast itself attached alone.
void Upkeep::lock(const GuardedContainerPtr& guarded, std::vector<VisitResult>& results) {
  if (guarded->cgroups().empty() || !guarded->cgroups().front()->v2) {
    return;
  }
  const std::optional<kernel::Cgroup>& cgroup = guarded->cgroups().front()->v2;
  kernel::Filters filters(host_, bpf_);
  const Result<kernel::AttachedPrograms> attached = bpf_.query(*cgroup, kernel::Reach::own);
  if (!attached || attached->ids.empty()) {
    return;
  }
  const bool is_locked = attached->attachment == container::Attachment::single;
  if (guarded->mode == Mode::lock && !is_locked && is_first_try(*guarded, "lock")) {
    Result<container::ProgramId> locked = kernel::lock_programs(filters, *cgroup);
    // The loop that heals may change the programs at the same time: then the lock is tried again.
    for (int tries = 1; !locked && kernel::is_overtaken(locked.error()) && tries < kMostLockTries; ++tries) {
      std::this_thread::sleep_for(kLockPause);
      locked = kernel::lock_programs(filters, *cgroup);
    }
    results.push_back(upkeep_result(guarded, Action::locked, "attached one program alone to " + cgroup->where,
                                    locked ? "" : locked.error().message));
  }
  if (guarded->mode == Mode::lock || guarded->mode < Mode::heal || !is_locked) {
    return;
  }
  const Result<kernel::ReadProgramPtr> program = filters.read(attached->ids.front());
  if (program && (*program)->owner == bpf::kOurName && is_first_try(*guarded, "unlock")) {
    const Result<container::ProgramId> unlocked = kernel::unlock_programs(filters, *cgroup);
    results.push_back(upkeep_result(guarded, Action::none, "let others attach programs to " + cgroup->where + " again",
                                    unlocked ? "" : unlocked.error().message));
  }
}

std::vector<VisitResult> Upkeep::maintain(const Survey& survey, Locks locks) {
  std::vector<VisitResult> results;
  kernel::Filters filters(host_, bpf_);
  (void)kernel::finish_exchanges(host_, filters);  // a lock that failed half-way leaves its cgroup frozen
  for (const GuardedContainerPtr& guarded : survey.guarded_containers) {
    harden(guarded, results);
    if (locks == Locks::as_policy_says) {
      lock(guarded, results);
    }
  }
  return results;
}

}  // namespace hf::guard
