#include "services/plugin/device_errors.h"

#include <algorithm>
#include <cctype>

#include "core/base/text.h"
#include "core/container/cgroup_name.h"
#include "kernel/files/clock.h"

namespace hf::plugin {
namespace {

bool is_at(const device::Unit& unit, std::string pci) {
  std::ranges::transform(pci, pci.begin(), [](unsigned char byte) { return char(std::tolower(byte)); });
  return unit.device_class == "nvidia" && unit.pci.starts_with(pci);
}

}  // namespace

DeviceErrors::DeviceErrors(kernel::EventLoop& loop, Settings settings)
    : loop_(loop),
      settings_(std::move(settings)),
      guard_(loop, settings_.socket, settings_.history, [this](const report::BlameRecord& record) {
        if (settings_.record) {
          settings_.record(record);
        }
        take_record(record);
      }) {}

Result<void> DeviceErrors::open(const kernel::Host& host, const std::set<unsigned>& ignored_xids) {
  ignored_xids_ = ignored_xids;
  nvidia::KernelLogEvents log = TRY(nvidia::KernelLogEvents::open(host));
  TRY(loop_.watch(log.descriptor(), [this] { take_log(); }));
  log_.emplace(std::move(log));
  return {};
}

void DeviceErrors::take_log() {
  using Kind = nvidia::LogEvent::Kind;
  for (const nvidia::LogEvent& event : log_->take()) {
    const bool is_xid = event.kind == Kind::xid && !ignored_xids_.contains(event.xid);
    if (!event.pci.empty() && (is_xid || event.kind == Kind::lost || event.kind == Kind::initialisation_failed)) {
      settings_.on_error({[&event](const device::Unit& unit) { return is_at(unit, event.pci); }, "",
                          printable("the driver reported: " + event.line)});
    }
  }
}

// A device that a container lost for good is not given to another one.
void DeviceErrors::take_record(const report::BlameRecord& record) {
  constexpr std::int64_t kOldest = 10'000;  // ms: the guard also sends records of the past
  if (record.action != report::Action::failed || kernel::wall_now() - record.at > kOldest) {
    return;
  }
  const std::optional<container::ParsedCgroupName> name = container::parse_cgroup_name(record.cgroup);
  for (const std::string& path : record.devices) {
    settings_.on_error(
        {[&path](const device::Unit& unit) { return std::ranges::count(unit.nodes, path) > 0; },
         name ? name->pod_uid : "",
         printable(record.container + " lost " + path + ", and it could not be given back: " + record.error)});
  }
}

}  // namespace hf::plugin
