#include "kernel/apply.h"

#include <chrono>
#include <ranges>
#include <variant>
#include <vector>

#include "kernel/device_v1.h"
#include "kernel/device_v2.h"
#include "kernel/observe.h"

namespace hf::kernel {
namespace {

using container::AttachProgram;
using container::DetachProgram;
using container::ReplaceProgram;
using container::WriteV1;

constexpr std::chrono::seconds kPatience{10};

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
  Result<void> operator()(const AttachProgram& step) const {
    TRY(attach_program(filters, *cgroups.v2, step.code));
    return {};
  }
};

// The letters a plan allows were missing before, and those it denies were there: the opposite write restores the list.
Error undo(const CgroupsOfProcess& cgroups, const std::vector<device::V1Write>& written, Error error) {
  for (const device::V1Write& write : std::views::reverse(written)) {
    const device::Verb opposite = write.verb == device::Verb::allow ? device::Verb::deny : device::Verb::allow;
    if (!write_v1(*cgroups.v1, {opposite, write.rule})) {
      error.message += "; '" + to_string(write) + "' could not be undone";
    }
  }
  return error;
}

}  // namespace

Result<void> carry_out(Filters& filters, const CgroupsOfProcess& cgroups, const container::Plan& plan) {
  // What can fail without anything having been changed comes first.
  for (const container::Step& step : plan.steps) {
    if (const ReplaceProgram* replace = std::get_if<ReplaceProgram>(&step)) {
      TRY(filters.load(replace->code, {}));
    }
  }
  std::vector<device::V1Write> written;
  for (const container::Step& step : plan.steps) {
    const Result<void> done = std::visit(CarryOut{filters, cgroups}, step);
    if (!done) {
      return std::unexpected(undo(cgroups, written, done.error()));
    }
    if (const WriteV1* write = std::get_if<WriteV1>(&step)) {
      written.push_back(write->write);
    }
  }
  return {};
}

Result<Applied> apply(Filters& filters, const CgroupsOfProcess& cgroups, const container::Change& change) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
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
                  done.error().message + "; somebody else changes this cgroup all the time");
    }
  }
}

}  // namespace hf::kernel
