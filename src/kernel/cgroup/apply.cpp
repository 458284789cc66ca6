#include "kernel/cgroup/apply.h"

#include <algorithm>
#include <chrono>
#include <ranges>
#include <variant>
#include <vector>

#include "core/device/shortest.h"
#include "kernel/cgroup/device_v1.h"
#include "kernel/cgroup/device_v2.h"
#include "kernel/cgroup/observe.h"

namespace hf::kernel {
namespace {

using container::AttachProgram;
using container::DetachProgram;
using container::RemoveShieldEntry;
using container::ReplaceProgram;
using container::WriteV1;

struct CarryOut {
  Filters& filters;
  const CgroupsOfProcess& cgroups;

  Result<void> operator()(const WriteV1& step) const { return write_v1(*cgroups.v1, step.write); }
  Result<void> operator()(const ReplaceProgram& step) const {
    TRY(replace_program(filters, *cgroups.v2, step.old, step.code));
    return {};
  }
  Result<void> operator()(const DetachProgram& step) const {
    return detach_program(filters, *cgroups.v2, step.old, step.programs);
  }
  Result<void> operator()(const RemoveShieldEntry& step) const {
    const ReadProgramPtr read = TRY(filters.read(step.shield));
    return read->shield ? read->shield->remove({cgroups.v2->id, read->depth, step.device}) : Result<void>();
  }
  Result<void> operator()(const AttachProgram& step) const {
    TRY(attach_program(filters, *cgroups.v2, step.code));
    return {};
  }
};

// The writes that remove what a write has added to the list as it was `before`, or restore what it removed. They deny
// no access bit that was allowed before.
std::vector<device::CgroupWrite> opposite_of(const device::CgroupWrite& write, const device::Table& before) {
  const device::Table touched =
      write.rule ? container::covered_by({write.verb, {*write.rule}}) : device::Table::everything();
  const bool was_allow = write.verb == device::Verb::allow;
  const device::Table changed = was_allow ? touched - before : touched & before;
  std::vector<device::CgroupWrite> writes;
  for (const device::Rule& rule : device::shortest_rules(changed)) {
    writes.push_back({was_allow ? device::Verb::deny : device::Verb::allow, rule});
  }
  return writes;
}

Error undo(const CgroupsOfProcess& cgroups, const device::Table& before,
           const std::vector<device::CgroupWrite>& written, Error error) {
  for (const device::CgroupWrite& write : std::views::reverse(written)) {
    for (const device::CgroupWrite& opposite : opposite_of(write, before)) {
      if (!write_v1(*cgroups.v1, opposite)) {
        error.message += "; '" + to_string(write) + "' could not be undone";
      }
    }
  }
  return error;
}

}  // namespace

Result<void> carry_out(Filters& filters, const CgroupsOfProcess& cgroups, const container::Plan& plan) {
  // Programs are loaded first, because loading can fail and changes nothing yet.
  for (const container::Step& step : plan.steps) {
    if (const ReplaceProgram* replace = std::get_if<ReplaceProgram>(&step)) {
      TRY(filters.load(replace->code, {}));
    }
  }
  const bool may_need_undo = plan.steps.size() > 1 && std::ranges::any_of(plan.steps, [](const container::Step& step) {
                               return std::holds_alternative<WriteV1>(step);
                             });
  const device::Table before = may_need_undo ? meaning(TRY(read_v1_list(*cgroups.v1))) : device::Table();
  std::vector<device::CgroupWrite> written;
  for (const container::Step& step : plan.steps) {
    const Result<void> done = std::visit(CarryOut{filters, cgroups}, step);
    if (!done) {
      return std::unexpected(undo(cgroups, before, written, done.error()));
    }
    if (const WriteV1* write = std::get_if<WriteV1>(&step)) {
      written.push_back(write->write);
    }
  }
  return {};
}

Result<Applied> apply(Filters& filters, const CgroupsOfProcess& cgroups, const container::Change& change,
                      std::chrono::milliseconds retry_limit) {
  const auto deadline = std::chrono::steady_clock::now() + retry_limit;
  for (int attempts = 1;; ++attempts) {
    const container::Observed before = TRY(observe(filters, cgroups));
    container::Plan plan = TRY(plan_change(before, change));
    const Result<void> done = carry_out(filters, cgroups, plan);
    if (done) {
      container::Observed after = TRY(observe(filters, cgroups));
      const bool holds = is_in_force(after, change);
      return Applied{std::move(plan), std::move(after), holds, attempts};
    }
    if (!is_overtaken(done.error())) {
      return std::unexpected(done.error());
    }
    if (std::chrono::steady_clock::now() > deadline) {
      return fail(std::errc::resource_unavailable_try_again,
                  done.error().message + "; another process changes this cgroup all the time");
    }
  }
}

}  // namespace hf::kernel
