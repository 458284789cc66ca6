#include "services/guard/upkeep.h"

#include <algorithm>
#include <thread>

#include "adapters/systemd/unit.h"
#include "core/base/text.h"
#include "kernel/container_node.h"
#include "kernel/device_v2.h"
#include "kernel/exchange_note.h"
#include "kernel/observe.h"

namespace hf::guard {
namespace {

using container::Mode;
using report::Action;

constexpr std::chrono::milliseconds kBusLimit{3000};
constexpr std::chrono::milliseconds kNodeLimit{2000};
constexpr std::chrono::seconds kBusPause{10};
constexpr std::chrono::milliseconds kLockPause{5};
constexpr int kMostLockTries = 20;

std::string make_node(const kernel::Host& host, const Ward& ward, const container::NodeState& node) {
  const kernel::NewNode wanted{node.owed.path, *node.owed.device, node.owed.permissions};
  const Result<void> made = kernel::make_node_in(host, *ward.handle, wanted, kNodeLimit);
  return made ? std::string() : made.error().message;
}

}  // namespace

bool Upkeep::is_first_try(const Ward& ward, const std::string& what) {
  return tried_.insert(ward.container.id.value + " " + std::to_string(ward.container.started_ticks) + " " + what)
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

void Upkeep::harden(const WardPtr& ward, std::vector<Deed>& deeds) {
  if (ward->to_harden.empty() || ward->mode < Mode::harden || !is_first_try(*ward, "harden")) {
    return;
  }
  std::vector<systemd::DeviceEntry> entries;
  std::vector<std::string> paths;
  for (const container::OwedNode& node : ward->to_harden) {
    const device::Request request = request_for(node);
    entries.push_back({request.device, request.access});
    paths.push_back(node.path);
  }
  if (!ward->handle->check()) {
    return;  // a unit of its name may be another's by now
  }
  systemd::Bus* connection = bus();
  const Result<void> told = connection == nullptr ? fail(std::errc::not_connected, "systemd does not answer")
                                                  : connection->allow_devices(ward->container.scope, entries);
  deeds.push_back({ward,
                   Action::hardened,
                   {"told systemd that " + ward->container.scope + " may have " + join(paths, ", ")},
                   told ? "" : told.error().message});
}

void Upkeep::mend(const View& view, std::vector<Deed>& deeds) {
  const WardPtr& ward = view.ward;
  Deed deed{ward, Action::mended, {}, {}};
  for (const container::NodeState& node : view.to_mend()) {
    if (!is_first_try(*ward, "mend " + node.owed.path + " " + to_string(*node.owed.device))) {
      continue;
    }
    const std::string error = make_node(host_, *ward, node);
    deed.steps.push_back("made " + node.owed.path + " anew as " + to_string(*node.owed.device) + ": " +
                         node.diagnosis.words);
    deed.error += (deed.error.empty() || error.empty() ? "" : "; ") + error;
  }
  if (!deed.steps.empty()) {
    deeds.push_back(std::move(deed));
  }
}

// And back, where the policy has changed its mind: only what we ourselves attached alone.
void Upkeep::lock(const WardPtr& ward, std::vector<Deed>& deeds) {
  if (ward->cgroups().empty() || !ward->cgroups().front()->v2) {
    return;
  }
  const std::optional<kernel::Cgroup>& cgroup = ward->cgroups().front()->v2;
  kernel::Filters filters(host_, bpf_);
  const Result<kernel::AttachedPrograms> attached = bpf_.query(*cgroup, kernel::Reach::own);
  if (!attached || attached->ids.empty()) {
    return;
  }
  const bool is_locked = attached->attachment == container::Attachment::single;
  if (ward->mode == Mode::lock && !is_locked && is_first_try(*ward, "lock")) {
    Result<container::ProgramId> locked = kernel::lock_programs(filters, *cgroup);
    // The loop that heals may be at it at the same time: then once more, when it is done.
    for (int tries = 1; !locked && kernel::is_overtaken(locked.error()) && tries < kMostLockTries; ++tries) {
      std::this_thread::sleep_for(kLockPause);
      locked = kernel::lock_programs(filters, *cgroup);
    }
    deeds.push_back({ward,
                     Action::locked,
                     {"attached one program alone to " + cgroup->where},
                     locked ? "" : locked.error().message});
  }
  if (ward->mode == Mode::lock || ward->mode < Mode::heal || !is_locked) {
    return;
  }
  const Result<kernel::ReadProgramPtr> program = filters.read(attached->ids.front());
  if (program && (*program)->owner == "holdfast" && is_first_try(*ward, "unlock")) {
    const Result<container::ProgramId> unlocked = kernel::unlock_programs(filters, *cgroup);
    deeds.push_back({ward,
                     Action::none,
                     {"let others attach programs to " + cgroup->where + " again"},
                     unlocked ? "" : unlocked.error().message});
  }
}

std::vector<Deed> Upkeep::look_after(const Survey& survey, Locks locks) {
  std::vector<Deed> deeds;
  kernel::Filters filters(host_, bpf_);
  (void)kernel::finish_exchanges(host_, filters);  // a lock that failed half-way leaves its cgroup frozen
  for (const WardPtr& ward : survey.wards) {
    harden(ward, deeds);
    if (locks == Locks::as_policy_says) {
      lock(ward, deeds);
    }
  }
  return deeds;
}

}  // namespace hf::guard
