#include "services/guard/startup.h"

#include <sched.h>

#include "adapters/journal/status.h"
#include "core/base/text.h"
#include "kernel/files/clock.h"
#include "kernel/net/socket.h"

namespace hf::guard {

void raise_priority() {
  sched_param priority{};
  priority.sched_priority = 1;
  (void)::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &priority);
}

report::Snapshot initial_snapshot(const kernel::Host& host, const DaemonSettings& settings,
                                  const container::Tiers& tiers) {
  report::Snapshot snapshot;
  snapshot.version = settings.version;
  snapshot.missing_capabilities = settings.missing_capabilities;
  snapshot.kernel = kernel::read_kernel_release(host).value_or("");
  snapshot.layout = layout_of(host);
  snapshot.host_name = kernel::own_host_name();
  snapshot.started_at = kernel::wall_now();
  snapshot.tiers = tiers;
  return snapshot;
}

Result<void> write_status_file(const kernel::Host& host, const DaemonSettings& settings,
                               const container::Tiers& tiers) {
  const journal::Status status{journal::own_program(host, settings.version), tiers};
  const std::optional<journal::Status> other = journal::read_status(host);
  if (other && other->program.pid != status.program.pid) {  // with another journal, or none, it was not refused
    return fail(std::errc::device_or_resource_busy,
                "holdfastd runs already (pid " + std::to_string(other->program.pid.value) + ")");
  }
  return journal::write_status(host, status);
}

void log_tiers(const DaemonSettings& settings, const container::Tiers& tiers, const std::string& why_no_shield) {
  std::string line = "watching";
  line += tiers.has_v2 ? " v2=" + to_string(tiers.v2) : "";
  line += tiers.has_v1 ? " v1=" + to_string(tiers.v1) : "";
  settings.callbacks.log(line, false);
  for (const std::string& why : tiers.why) {
    settings.callbacks.log("tier-refused why=" + quote(why), false);
  }
  if (tiers.has_v2 && !why_no_shield.empty()) {
    settings.callbacks.log("no-shield why=" + quote(why_no_shield), false);
  }
}

}  // namespace hf::guard
