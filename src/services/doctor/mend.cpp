#include "services/doctor/mend.h"

#include "kernel/device_node.h"
#include "services/doctor/doctor.h"

namespace hf::doctor {
namespace {

using container::Trouble;

bool is_for_mending(const container::NodeState& node) {
  if (!node.owed.device || node.owed.is_rule_only) {
    return false;
  }
  switch (node.diagnosis.trouble) {
    case Trouble::missing:
    case Trouble::missing_on_host:
    case Trouble::wrong_driver:
    case Trouble::no_device_node:
    case Trouble::permission_bits: return true;
    case Trouble::no_driver: return node.seen.device != node.owed.device;
    default: return false;
  }
}

}  // namespace

Result<report::MendReport> mend(Machine& machine, const std::string& container, const std::string& device,
                                Mending mending) {
  const report::Explanation explanation = TRY(explain(machine, container, device, false));
  report::MendReport report;
  report.container = title_of(explanation.line.container);
  report.is_done = mending == Mending::carry_out;
  for (const container::NodeState& node : explanation.nodes) {
    if (!is_for_mending(node)) {
      continue;
    }
    if (mending == Mending::carry_out) {
      TRY(kernel::make_node_in(machine.host, explanation.line.container.init, node.owed.path, *node.owed.device));
    }
    report.nodes.push_back({node.owed.path, *node.owed.device, node.diagnosis.words});
  }
  return report;
}

}  // namespace hf::doctor
