#include "services/guard/manual_heal.h"

#include <algorithm>

#include "core/base/add_missing.h"
#include "host/target.h"
#include "kernel/cgroup/exchange_note.h"
#include "kernel/cgroup/observe.h"
#include "kernel/files/clock.h"
#include "services/guard/inside_view.h"
#include "services/guard/survey.h"
#include "services/guard/upkeep.h"
#include "services/guard/visit.h"

namespace hf::guard {
namespace {

using report::HealReport;

void add_error(const std::string& more, std::string& all) { all += (all.empty() || more.empty() ? "" : "; ") + more; }

void add_plan(kernel::Filters& filters, const GuardedContainer& guarded, const kernel::CgroupsOfProcess& cgroups,
              HealReport::Line& line) {
  const Result<container::Observed> observed = kernel::observe(filters, cgroups);
  if (!observed) {
    add_error(observed.error().message, line.error);
    return;
  }
  const container::Drift drift = container::compare(*guarded.healed, *observed);
  const container::Repair repair = container::plan_repair(*observed, drift);
  add_missing(line.lost, drift.denied);
  for (const container::Step& step : repair.plan.steps) {
    line.steps.push_back(to_string(step));
  }
  for (const std::string& refused : repair.refused) {
    add_error(refused, line.error);
  }
}

// The shield is left as it is: it belongs to the daemon.
void add_visit(kernel::Filters& filters, const GuardedContainer& guarded, const kernel::CgroupsOfProcess& cgroups,
               HealReport::Line& line) {
  const Result<Visit> made =
      visit(filters, nullptr, {guarded, cgroups, nullptr}, VisitMode::may_heal, kernel::monotonic_now);
  if (!made) {
    add_error(made.error().message, line.error);
    return;
  }
  add_missing(line.lost, made->drift.denied);
  for (const container::Step& step : made->steps) {
    line.steps.push_back(to_string(step));
  }
  for (const std::string& refused : made->refused) {
    add_error(refused, line.error);
  }
}

void add_left(const container::NodeState& node, HealReport::Line& line) {
  line.left.push_back(node.owed->path);
  line.why_left.push_back(node.owed->path + ": " + node.diagnosis.text);
}

// What the rules refuse is in the plan already.
void add_planned_upkeep(const InsideView& view, HealReport::Line& line) {
  for (const container::OwedNode& node : view.guarded->to_harden) {
    line.steps.push_back("tell systemd that " + *view.guarded->container.unit + " may have " + node.path);
  }
  for (const container::NodeState& node : view.to_recreate()) {
    line.steps.push_back("recreate " + node.owed->path + " as " + to_string(*node.owed->device));
  }
  for (const container::NodeState& node : view.nodes) {
    const bool is_denied = node.diagnosis.failure == container::AccessFailure::cgroup_denies;
    if (node.is_inaccessible() && !is_denied && !can_be_recreated(node)) {
      add_left(node, line);
    }
  }
}

// What is still wrong is seen from inside: rules that allow a device are not enough to open it.
void add_what_is_left(const InsideView& view, HealReport::Line& line) {
  for (const container::NodeState& node : view.nodes) {
    if (node.is_inaccessible()) {
      add_left(node, line);
    }
  }
}

// The lines of the report are those of the survey's containers.
void carry_out_upkeep(host::OpenHost& open, const Survey& survey, HealReport& report) {
  (void)kernel::finish_exchanges(open.host, open.filters);
  Upkeep upkeep(open.host, open.filters.bpf());
  std::vector<VisitResult> results = upkeep.maintain(survey, Locks::leave);
  const ProbeTools tools{open.host, open.filters, open.prober};
  for (const GuardedContainerPtr& guarded : survey.guarded_containers) {
    upkeep.recreate_nodes(probe_inside(tools, guarded, survey.inventory), results);
  }
  for (const VisitResult& result : results) {
    const auto line = std::ranges::find(report.lines, result.guarded->container.id.value, &HealReport::Line::id);
    line->steps.insert(line->steps.end(), result.steps.begin(), result.steps.end());
    add_error(result.error, line->error);
  }
  for (std::size_t i = 0; i < report.lines.size(); ++i) {
    add_what_is_left(probe_inside(tools, survey.guarded_containers[i], survey.inventory), report.lines[i]);
  }
}

}  // namespace

Result<report::HealReport> heal_manually(host::OpenHost& open, const std::vector<std::string>& targets, RunMode mode) {
  config::Config config = TRY(config::read_config(open.host));
  config.policy = {};
  config.policy.mode = container::Mode::heal;
  const host::Census census = TRY(host::take_census(open.host, config));
  // A heal gives nothing that is not owed, so that it is safe for all containers of a pod.
  const std::vector<const host::DiscoveredContainer*> wanted =
      TRY(host::find_discovered(open.host, census, targets, host::PodNames::all_containers));
  Surveyor surveyor(open.host);
  Survey survey = TRY(surveyor.take(config, SurveyScope::everything));
  std::erase_if(survey.guarded_containers, [&](const GuardedContainerPtr& guarded) {
    return !targets.empty() && std::ranges::none_of(wanted, [&guarded](const host::DiscoveredContainer* discovered) {
      return discovered->container.id == guarded->container.id && discovered->container.init == guarded->container.init;
    });
  });
  HealReport report;
  report.is_done = mode == RunMode::carry_out;
  for (const host::DiscoveredContainer* discovered : wanted) {
    if (std::ranges::none_of(survey.guarded_containers, [discovered](const GuardedContainerPtr& guarded) {
          return guarded->container.id == discovered->container.id;
        })) {
      report.not_owed.push_back(title_of(discovered->container));
    }
  }
  for (const GuardedContainerPtr& guarded : survey.guarded_containers) {
    HealReport::Line line;
    line.id = guarded->container.id.value;
    line.container = title_of(guarded->container);
    for (const kernel::CgroupsPtr& cgroups : guarded->cgroups()) {
      (report.is_done ? add_visit : add_plan)(open.filters, *guarded, *cgroups, line);
    }
    if (guarded->cgroups().empty()) {
      add_error("its first process is in none of the container's own cgroups, and others' are not changed", line.error);
    }
    if (!report.is_done) {
      add_planned_upkeep(probe_inside({open.host, open.filters, open.prober}, guarded, survey.inventory), line);
    }
    report.lines.push_back(std::move(line));
  }
  if (report.is_done) {
    carry_out_upkeep(open, survey, report);
  }
  return report;
}

}  // namespace hf::guard
