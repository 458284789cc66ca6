#include "services/doctor/mend.h"

#include <chrono>

#include "kernel/container_node.h"
#include "services/doctor/doctor.h"

namespace hf::doctor {
namespace {

constexpr std::chrono::milliseconds kNodeLimit{2000};

}  // namespace

Result<report::MendReport> mend(Machine& machine, const std::string& container, const std::string& device,
                                Mending mending) {
  const report::Explanation explanation = TRY(explain(machine, container, device, false));
  report::MendReport report;
  report.container = title_of(explanation.line.container);
  report.is_done = mending == Mending::carry_out;
  for (const container::NodeState& node : explanation.nodes) {
    if (!can_be_made_anew(node)) {
      continue;
    }
    if (mending == Mending::carry_out) {
      const kernel::ContainerHandle handle =
          TRY(kernel::ContainerHandle::open(machine.host, explanation.line.container));
      TRY(kernel::make_node_in(machine.host, handle, {node.owed.path, *node.owed.device, node.owed.permissions},
                               kNodeLimit));
    }
    report.nodes.push_back({node.owed.path, *node.owed.device, node.diagnosis.words});
  }
  return report;
}

}  // namespace hf::doctor
