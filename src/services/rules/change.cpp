#include "services/rules/change.h"

#include <utility>

#include "kernel/apply.h"
#include "kernel/observe.h"

namespace hf::rules {

Result<report::ChangeReport> change(Node& node, const std::string& target, const container::Change& wanted, Mode mode) {
  const Target place = TRY(parse_target(target));
  if (std::holds_alternative<FilePath>(place) || std::holds_alternative<container::ProgramId>(place)) {
    return fail(std::errc::invalid_argument, "target '" + target + "': only pid:N and cgroup:PATH can be changed");
  }
  kernel::Filters* filters = TRY(node.filters());
  const kernel::CgroupsOfProcess cgroups = TRY(open_cgroups(*TRY(node.host()), place));
  if (mode == Mode::dry_run) {
    const container::Observed observed = TRY(kernel::observe(*filters, cgroups));
    container::Plan plan = TRY(plan_change(observed, wanted));
    const report::Outcome outcome = plan.steps.empty() ? report::Outcome::already : report::Outcome::planned;
    return report::ChangeReport{target, wanted, outcome, std::move(plan), 0};
  }
  kernel::Applied applied = TRY(kernel::apply(*filters, cgroups, wanted));
  const report::Outcome outcome = !applied.holds               ? report::Outcome::undone
                                  : applied.plan.steps.empty() ? report::Outcome::already
                                                               : report::Outcome::done;
  return report::ChangeReport{target, wanted, outcome, std::move(applied.plan), applied.attempts};
}

}  // namespace hf::rules
