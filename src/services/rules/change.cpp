#include "services/rules/change.h"

#include <utility>
#include <vector>

#include "core/base/text.h"
#include "kernel/apply.h"
#include "kernel/observe.h"

namespace hf::rules {
namespace {

// One device of each rule, and what can be asked about it.
std::vector<device::Request> samples_of(const device::RuleSet& rules) {
  std::vector<device::Request> samples;
  for (const device::Rule& rule : rules) {
    const device::Selector& selector = rule.selector;
    const device::Device device{selector.kind.value_or(device::Kind::character),
                                selector.major.value_or(device::Span{1, 1}).first,
                                selector.minor.value_or(device::Span{1, 1}).first};
    for (unsigned access = 1; access <= unsigned(device::Access::all); ++access) {
      const auto letters = device::Access(access);
      if (contains(rule.access, letters) && device::kAskable.allows(letters)) {
        samples.push_back({device, letters});
      }
    }
  }
  return samples;
}

struct Proof {
  report::Outcome outcome;
  std::string detail;
};

// Gates that can be read have proven it; where one cannot, the kernel is asked about a device of each rule.
Proof prove(Node& node, const NamedTarget& target, const container::Change& wanted, const kernel::Applied& applied) {
  const report::Outcome fine = applied.plan.steps.empty() ? report::Outcome::already : report::Outcome::done;
  const bool grants = wanted.verb == device::Verb::allow;
  const bool all_read = container::effective(applied.after).exact;
  if (applied.holds && (all_read || !grants)) {
    return {fine, {}};
  }
  if (!applied.holds && (all_read || grants)) {
    return {report::Outcome::undone, "somebody has changed it again since"};
  }
  Result<Inspection> inspection = Inspection::open(node, target);
  if (!inspection) {
    return {report::Outcome::unproven, inspection.error().message};
  }
  for (const device::Request& sample : samples_of(wanted.rules)) {
    const container::Answer answer = inspection->ask(sample);
    if (answer.kind == container::Answer::Kind::unknown) {
      return {report::Outcome::unproven, answer.detail};
    }
    if ((answer.kind == container::Answer::Kind::allow) != grants) {
      return {report::Outcome::undone,
              to_string(sample) + " is " + (grants ? "denied by " + answer.detail : "still allowed")};
    }
  }
  // A deny that the kernel has taken refuses all it names; an allow undoes only a hidden deny with the very same
  // selector.
  for (const device::Rule& rule : wanted.rules) {
    const bool is_one = rule.selector.kind && rule.selector.major && rule.selector.major->is_point() &&
                        rule.selector.minor && rule.selector.minor->is_point();
    if (grants && !is_one) {
      return {report::Outcome::unproven,
              "a gate cannot be read, and of '" + to_string(rule) + "' only one device was asked about"};
    }
  }
  return {fine, {}};
}

}  // namespace

Result<report::ChangeReport> change(Node& node, const NamedTarget& named, const container::Change& wanted, Mode mode) {
  const auto& [target, place] = named;
  if (std::holds_alternative<FilePath>(place) || std::holds_alternative<container::ProgramId>(place)) {
    return fail(std::errc::invalid_argument, "target " + quote(target) + ": only pid:N and cgroup:PATH can be changed");
  }
  kernel::Filters* filters = TRY(node.filters());
  const kernel::CgroupsPtr own = TRY(open_own_cgroups(*TRY(node.host()), place));
  const kernel::CgroupsOfProcess& cgroups = *own;
  if (mode == Mode::dry_run) {
    const container::Observed observed = TRY(kernel::observe(*filters, cgroups));
    container::Plan plan = TRY(plan_change(observed, wanted));
    const report::Outcome outcome = plan.steps.empty() ? report::Outcome::already : report::Outcome::planned;
    return report::ChangeReport{target, wanted, outcome, std::move(plan), 0, {}};
  }
  kernel::Applied applied = TRY(kernel::apply(*filters, cgroups, wanted));
  Proof proof = prove(node, named, wanted, applied);
  return report::ChangeReport{
      target, wanted, proof.outcome, std::move(applied.plan), applied.attempts, std::move(proof.detail)};
}

}  // namespace hf::rules
