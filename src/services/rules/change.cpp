#include "services/rules/change.h"

#include <utility>
#include <vector>

#include "core/base/text.h"
#include "kernel/cgroup/apply.h"
#include "kernel/cgroup/observe.h"

namespace hf::rules {
namespace {

constexpr std::chrono::seconds kRetryLimit{10};  // against a writer that changes the same cgroup

// One device of each rule, with every access that can be probed.
std::vector<device::Request> samples_of(const device::RuleSet& rules) {
  std::vector<device::Request> samples;
  for (const device::Rule& rule : rules) {
    const device::Selector& selector = rule.selector;
    const device::Device device{selector.kind.value_or(device::Kind::character),
                                selector.major.value_or(device::Span{1, 1}).first,
                                selector.minor.value_or(device::Span{1, 1}).first};
    for (unsigned bits = 1; bits <= unsigned(device::Access::all); ++bits) {
      const auto access = device::Access(bits);
      if (contains(rule.access, access) && device::kAskable.allows(access)) {
        samples.push_back({device, access});
      }
    }
  }
  return samples;
}

struct Proof {
  report::Outcome outcome;
  std::string detail;
};

// Gates that can be read prove the change; where one cannot, a probe asks the kernel about a device of each rule.
Proof prove(host::HostOpener& opener, const NamedTarget& target, const container::Change& wanted,
            const kernel::Applied& applied) {
  const report::Outcome fine = applied.plan.steps.empty() ? report::Outcome::already : report::Outcome::done;
  const bool grants = wanted.verb == device::Verb::allow;
  const bool all_read = container::effective(applied.after).exact;
  if (applied.holds && (all_read || !grants)) {
    return {fine, {}};
  }
  if (!applied.holds && (all_read || grants)) {
    return {report::Outcome::undone, "another process has changed it again since"};
  }
  Result<Inspection> inspection = Inspection::open(opener, target);
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
  // A deny that the kernel has accepted refuses all that it selects; an allow undoes only a hidden deny with the very
  // same selector.
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

Result<report::ChangeReport> change(host::HostOpener& opener, const NamedTarget& named, const container::Change& wanted,
                                    RunMode mode) {
  const auto& [target, place] = named;
  if (std::holds_alternative<FilePath>(place) || std::holds_alternative<container::ProgramId>(place)) {
    return fail(std::errc::invalid_argument,
                "target " + quote(target) + ": only containers, pid:N and cgroup:PATH can be changed");
  }
  const host::OpenHost& open = *TRY(opener.get());
  const kernel::CgroupsPtr own = TRY(open_own_cgroups(open.host, place));
  const kernel::CgroupsOfProcess& cgroups = *own;
  if (mode == RunMode::dry_run) {
    const container::Observed observed = TRY(kernel::observe(open.filters, cgroups));
    container::Plan plan = TRY(plan_change(observed, wanted));
    const report::Outcome outcome = plan.steps.empty() ? report::Outcome::already : report::Outcome::planned;
    return report::ChangeReport{target, wanted, outcome, std::move(plan), 0, {}};
  }
  kernel::Applied applied = TRY(kernel::apply(open.filters, cgroups, wanted, kRetryLimit));
  Proof proof = prove(opener, named, wanted, applied);
  return report::ChangeReport{
      target, wanted, proof.outcome, std::move(applied.plan), applied.attempts, std::move(proof.detail)};
}

}  // namespace hf::rules
