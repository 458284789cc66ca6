#include "services/guard/visit.h"

#include "kernel/apply.h"
#include "kernel/clock.h"
#include "kernel/observe.h"

namespace hf::guard {
namespace {

constexpr int kMostAttempts = 100;  // against somebody who changes the cgroup all the time; then the next event is awaited
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

Result<Visit> visit(const Tools& tools, const Ward& ward, const kernel::CgroupsOfProcess& cgroups, Hands hands) {
  const auto generate = [&tools](const device::Table& table) { return tools.twins.code_for(table); };
  Visit made;
  for (;; ++made.attempts) {
    const container::Observed before = TRY(kernel::observe(tools.filters, cgroups));
    made.drift = container::compare(ward.owed, before);
    if (made.attempts == 1) {
      made.before = container::effective(before);
    }
    const container::Drift ours = container::compare(ward.healed, before);
    if (hands == Hands::look_only || ours.is_none()) {
      made.left = made.drift;
      made.after = made.before;
      return made;
    }
    made.repair = container::plan_repair(before, ours, generate);
    const Result<void> done = kernel::carry_out(tools.filters, cgroups, made.repair.plan);
    if (done) {
      made.healed_at = made.repair.plan.steps.empty() ? 0 : kernel::monotonic_now();
      break;
    }
    if (!kernel::is_overtaken(done.error()) || made.attempts == kMostAttempts) {
      return std::unexpected(done.error());
    }
  }
  const container::Observed after = TRY(kernel::observe(tools.filters, cgroups));
  made.left = container::compare(ward.owed, after);
  made.after = container::effective(after);
  return made;
}

void keep_ready(const Tools& tools, const device::Table& table) {
  if (const Result<bpf::Code> code = tools.twins.code_for(table)) {
    (void)tools.filters.load(*code, {});
  }
}

void prepare(const Tools& tools, const Ward& ward, const device::Table& likely) {
  container::Gate gate;
  gate.program = container::AttachedProgram{container::ProgramId{}, {}, {}, {}, container::Attachment::several, {}};
  gate.meaning = likely;
  container::Observed imagined;
  imagined.gates.push_back(std::move(gate));
  const container::Drift drift = container::compare(ward.healed, imagined);
  const container::Repair repair = container::plan_repair(
      imagined, drift, [&tools](const device::Table& table) { return tools.twins.code_for(table); });
  for (const container::Step& step : repair.plan.steps) {
    if (const auto* replace = std::get_if<container::ReplaceProgram>(&step)) {
      (void)tools.filters.load(replace->code, {});
    }
  }
}

}  // namespace hf::guard
