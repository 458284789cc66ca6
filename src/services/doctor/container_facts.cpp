#include <algorithm>
#include <chrono>

#include "adapters/ledger/ledger.h"
#include "host/container_view.h"
#include "kernel/cgroup/observe.h"
#include "kernel/files/file.h"
#include "services/doctor/facts.h"

namespace hf::doctor {
namespace {

constexpr std::chrono::milliseconds kMinProbeTimeout{200};

class Examination {
 public:
  Examination(host::OpenHost& opened, const HostFacts& host, const host::DiscoveredContainer& discovered)
      : opened_(opened), host_(host) {
    facts_.discovered = &discovered;
  }

  ContainerFacts examine(kernel::Depth depth) {
    collect_evidence();
    observe_rules();
    read_unit();
    if (!facts_.entitlement.owes_nothing()) {
      view_container(depth);
      constexpr std::size_t kMostMounts = std::size_t(1) << 20U;  // bytes; a container may create 100,000 mounts
      facts_.mounts = container::parse_mountinfo(
          handle_ ? kernel::read_start(handle_->process().directory.get(), "mountinfo", kMostMounts).value_or("") : "");
    }
    return std::move(facts_);
  }

 private:
  void collect_evidence() {
    facts_.claims = host::claims_of(opened_.host, *facts_.discovered, host_.sources, host_.inventory);
    facts_.entitlement = entitle(facts_.claims, host_.inventory, host_.config.classes);
    const Result<std::optional<ledger::Entry>> entry = ledger::read_entry(opened_.host, facts_.container().id);
    facts_.ledger_problem = entry ? "" : entry.error().message;
    if (facts_.discovered->spec) {
      facts_.spec_table = meaning(facts_.discovered->spec->rules, device::OciReading::later_wins);
      facts_.spec_allows_all = facts_.spec_table.contains(device::Table::everything());
    }
  }

  void observe_rules() {
    Result<kernel::ContainerHandle> handle = kernel::ContainerHandle::open(opened_.host, facts_.container());
    if (!handle) {
      facts_.observed_problem = handle.error().message;
      return;
    }
    handle_.emplace(*std::move(handle));
    Result<container::Observed> observed = kernel::observe(opened_.filters, handle_->actual());
    if (observed) {
      facts_.observed = *std::move(observed);
    } else {
      facts_.observed_problem = observed.error().message;
    }
  }

  void read_unit() {
    if (!facts_.container().unit || !host_.has_systemd) {
      return;
    }
    facts_.unit = systemd::read_unit_devices(opened_.host, *facts_.container().unit);
    if (facts_.unit) {
      facts_.unit_table = meaning(*facts_.unit, host::device_allow_context(opened_.host, host_.inventory));
    }
  }

  void view_container(kernel::Depth depth) {
    const Shared<container::Entitlement> owed(facts_.entitlement);
    if (!handle_) {
      facts_.nodes = host::unseen_nodes(owed, facts_.observed_problem);
      return;
    }
    const host::ViewRequest request{
        *handle_, owed, facts_.observed, facts_.observed_problem, depth, opened_.probe_timeout};
    host::ContainerView view = host::view_container(opened_.host, opened_.prober, host_.inventory, request);
    if (view.has_timed_out) {  // halving the timeout bounds the total time where many containers hang
      opened_.probe_timeout = std::max(kMinProbeTimeout, opened_.probe_timeout / 2);
    }
    facts_.nodes = std::move(view.nodes);
    facts_.not_owed = std::move(view.not_owed);
  }

  host::OpenHost& opened_;
  const HostFacts& host_;
  ContainerFacts facts_;
  std::optional<kernel::ContainerHandle> handle_;
};

}  // namespace

ContainerFacts read_container_facts(host::OpenHost& opened, const HostFacts& host,
                                    const host::DiscoveredContainer& discovered, kernel::Depth depth) {
  return Examination(opened, host, discovered).examine(depth);
}

}  // namespace hf::doctor
