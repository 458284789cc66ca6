#include "services/guard/by_hand.h"

#include <algorithm>

#include "kernel/clock.h"
#include "kernel/exchange_note.h"
#include "kernel/observe.h"
#include "node/target.h"
#include "services/guard/survey.h"
#include "services/guard/upkeep.h"
#include "services/guard/view.h"
#include "services/guard/visit.h"

namespace hf::guard {
namespace {

using report::HealReport;

void add_new(const std::vector<std::string>& more, std::vector<std::string>& all) {
  for (const std::string& one : more) {
    if (std::ranges::find(all, one) == all.end()) {
      all.push_back(one);
    }
  }
}

void add_error(const std::string& more, std::string& all) { all += (all.empty() || more.empty() ? "" : "; ") + more; }

void add_plan(kernel::Filters& filters, const Ward& ward, const kernel::CgroupsOfProcess& cgroups,
              HealReport::Line& line) {
  const Result<container::Observed> observed = kernel::observe(filters, cgroups);
  if (!observed) {
    add_error(observed.error().message, line.error);
    return;
  }
  const container::Drift drift = container::compare(*ward.healed, *observed);
  const container::Repair repair = container::plan_repair(*observed, drift);
  add_new(drift.denied, line.lost);
  for (const container::Step& step : repair.plan.steps) {
    line.steps.push_back(to_string(step));
  }
  for (const std::string& refused : repair.refused) {
    add_error(refused, line.error);
  }
}

// The shield is left as it is: it belongs to the daemon.
void add_visit(kernel::Filters& filters, const Ward& ward, const kernel::CgroupsOfProcess& cgroups,
               HealReport::Line& line) {
  const Result<Visit> made = visit(filters, nullptr, {ward, cgroups, nullptr}, Hands::may_heal, kernel::monotonic_now);
  if (!made) {
    add_error(made.error().message, line.error);
    return;
  }
  add_new(made->drift.denied, line.lost);
  add_new(made->left.denied, line.left);
  for (const container::Step& step : made->steps) {
    line.steps.push_back(to_string(step));
  }
  for (const std::string& refused : made->refused) {
    add_error(refused, line.error);
  }
}

void add_planned_upkeep(const View& view, HealReport::Line& line) {
  for (const container::OwedNode& node : view.ward->to_harden) {
    line.steps.push_back("tell systemd that " + view.ward->container.scope + " may have " + node.path);
  }
  for (const container::NodeState& node : view.to_mend()) {
    line.steps.push_back("make " + node.owed.path + " anew as " + to_string(*node.owed.device));
  }
}

}  // namespace

Result<report::HealReport> heal_by_hand(const Bench& bench, const std::vector<std::string>& words, Doing doing) {
  config::Config config = TRY(config::read_config(bench.host));
  config.policy = {};
  config.policy.mode = container::Mode::heal;
  const node::Census census = TRY(node::take_census(bench.host, config));
  const std::vector<const node::Resident*> wanted = TRY(node::find_residents(bench.host, census, words));
  Surveyor surveyor(bench.host);
  Survey survey = TRY(surveyor.take(config, Care::everything));
  std::erase_if(survey.wards, [&](const WardPtr& ward) {
    return !words.empty() && std::ranges::none_of(wanted, [&ward](const node::Resident* resident) {
      return resident->container.id == ward->container.id && resident->container.init == ward->container.init;
    });
  });
  HealReport report;
  report.is_done = doing == Doing::carry_out;
  for (const WardPtr& ward : survey.wards) {
    HealReport::Line line;
    line.id = ward->container.id.value;
    line.container = title_of(ward->container);
    for (const kernel::CgroupsPtr& cgroups : ward->cgroups()) {
      (report.is_done ? add_visit : add_plan)(bench.filters, *ward, *cgroups, line);
    }
    if (ward->cgroups().empty()) {
      add_error("its first process is in none of the container's own cgroups, and others' are not changed", line.error);
    }
    if (!report.is_done) {
      add_planned_upkeep(look_inside({bench.host, bench.filters.bpf(), bench.seats}, ward, survey.inventory), line);
    }
    report.lines.push_back(std::move(line));
  }
  if (report.is_done) {
    (void)kernel::finish_exchanges(bench.host, bench.filters);
    Upkeep upkeep(bench.host, bench.filters.bpf());
    std::vector<Deed> deeds = upkeep.look_after(survey, Locks::leave);
    for (const WardPtr& ward : survey.wards) {
      upkeep.mend(look_inside({bench.host, bench.filters.bpf(), bench.seats}, ward, survey.inventory), deeds);
    }
    for (const Deed& deed : deeds) {
      const auto line = std::ranges::find(report.lines, deed.ward->container.id.value, &HealReport::Line::id);
      line->steps.insert(line->steps.end(), deed.steps.begin(), deed.steps.end());
      add_error(deed.error, line->error);
    }
  }
  return report;
}

}  // namespace hf::guard
