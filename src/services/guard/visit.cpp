#include "services/guard/visit.h"

#include <algorithm>
#include <iterator>

#include "kernel/apply.h"
#include "kernel/clock.h"
#include "kernel/observe.h"

namespace hf::guard {
namespace {

constexpr int kMostAttempts =
    100;  // against somebody who changes the cgroup all the time; then the next event is awaited
constexpr std::size_t kMostTwins = 1024;

}  // namespace

std::size_t Twins::Hash::operator()(const device::Table& table) const {
  std::size_t hash = 0;
  for (const device::Kind kind : device::kKinds) {
    for (const device::Band& band : table.plane(kind)) {
      hash = hash * 1099511628211U + band.first;
      for (const device::Segment& segment : band.row) {
        hash = hash * 1099511628211U + (std::size_t(segment.first) << 8U) + segment.allowed.bits();
      }
    }
  }
  return hash;
}

Result<bpf::Code> Twins::code_for(const device::Table& table) {
  const auto known = codes_.find(table);
  if (known != codes_.end()) {
    return known->second;
  }
  bpf::Code code = TRY(bpf::generate(table));
  if (codes_.size() >= kMostTwins) {
    codes_.clear();
  }
  return codes_.emplace(table, std::move(code)).first->second;
}

namespace {

// Before anything else is read: the cgroup's own gates, and what they refuse. On v1 a rule that is written twice means
// the same as once, and one that a list above refuses is refused by the kernel.
struct Reflex {
  container::Observed found;
  std::vector<container::Step> steps;  // that were tried
  std::uint64_t healed_at = 0;         // 0: something came between, or there was nothing to do
};

// One question, one replacement. False where it is not that simple.
bool answer_by_habit(const Tools& tools, const kernel::CgroupsOfProcess& cgroups, const Habits& habits,
                     Reflex& reflex) {
  if (habits.empty() || !cgroups.v2 || (cgroups.v1 && !cgroups.v1->path.is_root())) {
    return false;
  }
  const Result<kernel::AttachedPrograms> attached = tools.filters.bpf().query(*cgroups.v2, kernel::Reach::own);
  if (!attached || attached->ids.size() != 1 || attached->attachment != container::Attachment::several) {
    return false;
  }
  const Result<kernel::ReadProgramPtr> found = tools.filters.read(attached->ids.front());
  const auto habit =
      found ? std::ranges::find_if(
                  habits, [&found](const Habit& entry) { return bpf::same(entry.code, (*found)->program.code); })
            : habits.end();
  if (habit == habits.end() ||
      !tools.filters.bpf().attach(*cgroups.v2, *habit->twin, kernel::InsteadOf{(*found)->program})) {
    return false;
  }
  reflex.healed_at = kernel::monotonic_now();
  Result<container::Gate> gate = kernel::observe_program(tools.filters, attached->ids.front());
  const Result<kernel::ReadProgramPtr> twin = tools.filters.read(habit->twin->id);
  if (gate && gate->meaning && twin && (*twin)->meaning) {
    gate->where = cgroups.v2->where;
    reflex.steps.emplace_back(container::ReplaceProgram{
        gate->where, attached->ids.front(), gate->owner, {}, *gate->meaning, *(*twin)->meaning, false});
    reflex.found.gates.push_back(*std::move(gate));
  }
  return true;
}

// Remembers what a plan has put in the place of a single program.
void learn(const Tools& tools, const container::Observed& found, const container::Plan& plan, Habits& habits) {
  constexpr std::size_t kMostHabits = 4;
  for (const container::Step& step : plan.steps) {
    const auto* replace = std::get_if<container::ReplaceProgram>(&step);
    const auto gate = replace == nullptr ? found.gates.end()
                                         : std::ranges::find_if(found.gates, [replace](const container::Gate& one) {
                                             return one.program && one.program->id == replace->old && one.meaning;
                                           });
    if (gate == found.gates.end() || replace->keeps_original) {
      continue;
    }
    Result<kernel::ProgramPtr> twin = tools.filters.load(replace->code, {});
    if (habits.size() >= kMostHabits) {
      habits.erase(habits.begin());
    }
    if (twin) {
      habits.push_back({gate->program->code, *std::move(twin)});
    }
  }
}

Result<Reflex> react(const Tools& tools, const Ward& ward, const kernel::CgroupsOfProcess& cgroups, Hands hands,
                     Habits& habits) {
  Reflex reflex;
  if (hands == Hands::may_heal && answer_by_habit(tools, cgroups, habits, reflex)) {
    return reflex;
  }
  reflex.found = TRY(kernel::observe_own(tools.filters, cgroups));
  const container::Drift drift = container::compare(*ward.healed, reflex.found);
  if (hands == Hands::look_only || drift.missing.empty()) {
    return reflex;
  }
  container::Plan plan;
  container::Observed programs = reflex.found;
  std::erase_if(programs.gates, [](const container::Gate& gate) { return !gate.program; });
  for (const container::Gate& gate : reflex.found.gates) {
    for (const device::Rule& rule : gate.list ? drift.missing : device::RuleSet()) {
      plan.steps.emplace_back(container::WriteV1{gate.where, {device::Verb::allow, rule}});
    }
  }
  const container::Drift refused = container::compare(*ward.healed, programs);
  const auto generate = [&tools](const device::Table& table) { return tools.twins.code_for(table); };
  for (container::Step& step : container::plan_repair(programs, refused, generate).plan.steps) {
    plan.steps.push_back(std::move(step));
  }
  if (kernel::carry_out(tools.filters, cgroups, plan)) {  // whatever failed is tried again, with more care
    reflex.healed_at = kernel::monotonic_now();
    learn(tools, reflex.found, plan, habits);
  }
  reflex.steps = std::move(plan.steps);
  return reflex;
}

// The rules as they were found: the cgroup's own gates of then with those above of now.
container::Effective as_found(const container::Observed& own, const container::Observed& now) {
  container::Observed whole = own;
  for (const container::Gate& gate : now.gates) {
    if (!gate.is_own) {
      whole.gates.push_back(gate);
    }
  }
  return container::effective(whole);
}

}  // namespace

namespace {

// What was refused between the first look and the second was lost as well: a writer may have more than one thing to
// say.
void add_denied(const std::vector<std::string>& more, std::vector<std::string>& all) {
  for (const std::string& path : more) {
    if (std::ranges::find(all, path) == all.end()) {
      all.push_back(path);
    }
  }
}

}  // namespace

Result<Visit> visit(const Tools& tools, const Ward& ward, const kernel::CgroupsOfProcess& cgroups, Hands hands,
                    Habits& habits, const std::function<void()>& then) {
  const auto generate = [&tools](const device::Table& table) { return tools.twins.code_for(table); };
  Reflex reflex = TRY(react(tools, ward, cgroups, hands, habits));
  if (then && reflex.healed_at != 0) {
    then();
  }
  Visit made;
  made.drift = container::compare(*ward.owed, reflex.found);
  made.healed_at = reflex.healed_at;
  bool has_tried = !reflex.steps.empty();
  made.repair.plan.steps = std::move(reflex.steps);
  for (;; ++made.attempts) {
    const container::Observed now = TRY(kernel::observe(tools.filters, cgroups));
    if (made.attempts == 1) {
      made.before = as_found(reflex.found, now);
      made.before.table = made.before.table & container::effective(now).table;
    }
    made.left = container::compare(*ward.owed, now);
    made.after = container::effective(now);
    const container::Drift ours = container::compare(*ward.healed, now);
    if (has_tried && ours.is_none()) {  // also where somebody came between: what was done before that is enough
      made.healed_at = made.healed_at == 0 ? kernel::monotonic_now() : made.healed_at;
    } else if (made.attempts == 1 && made.healed_at == 0) {
      made.drift = made.left;  // with what is refused above
    }
    add_denied(made.left.denied, made.drift.denied);
    if (hands == Hands::look_only || ours.is_none() || made.attempts == kMostAttempts) {
      return made;
    }
    container::Repair repair = container::plan_repair(now, ours, generate);
    made.repair.refused = std::move(repair.refused);
    if (made.healed_at == 0) {
      made.repair.plan.steps.clear();
    }
    if (repair.plan.steps.empty()) {
      return made;
    }
    has_tried = true;
    const Result<void> done = kernel::carry_out(tools.filters, cgroups, repair.plan);
    if (!done && !kernel::is_overtaken(done.error())) {
      return std::unexpected(done.error());
    }
    made.healed_at = done ? kernel::monotonic_now() : made.healed_at;
    std::ranges::move(repair.plan.steps, std::back_inserter(made.repair.plan.steps));
  }
}

namespace {

void load_ready(const Tools& tools, const bpf::Code& code, Ready& ready) {
  Result<kernel::ProgramPtr> loaded = tools.filters.load(code, {});
  if (loaded && std::ranges::find(ready, *loaded) == ready.end()) {
    ready.push_back(*std::move(loaded));
  }
}

}  // namespace

void keep_ready(const Tools& tools, const device::Table& table, Ready& ready) {
  if (const Result<bpf::Code> code = tools.twins.code_for(table)) {
    load_ready(tools, *code, ready);
  }
}

void prepare(const Tools& tools, const Ward& ward, const device::Table& likely, Ready& ready) {
  container::Gate gate;
  gate.program = container::AttachedProgram{container::ProgramId{}, {}, {}, {}, container::Attachment::several, {}};
  gate.meaning = likely;
  container::Observed imagined;
  imagined.gates.push_back(std::move(gate));
  const container::Drift drift = container::compare(*ward.healed, imagined);
  const container::Repair repair = container::plan_repair(
      imagined, drift, [&tools](const device::Table& table) { return tools.twins.code_for(table); });
  for (const container::Step& step : repair.plan.steps) {
    if (const auto* replace = std::get_if<container::ReplaceProgram>(&step)) {
      load_ready(tools, replace->code, ready);
    }
  }
}

}  // namespace hf::guard
