#include "services/guard/visit.h"

#include <algorithm>
#include <iterator>

#include "core/base/add_missing.h"
#include "kernel/cgroup/apply.h"
#include "kernel/cgroup/observe.h"

namespace hf::guard {
namespace {

// Bounds a visit while a writer changes the cgroup all the time; the next event leads to another visit.
constexpr int kMostAttempts = 100;

// A path that was denied at any attempt of the visit was lost; one that the shield did not hold at one attempt was not
// held.
void add_drift(const container::Drift& now, container::Drift& all) {
  std::erase_if(all.held, [&now](const std::string& path) {
    const bool is_denied = std::ranges::find(now.denied, path) != now.denied.end();
    return is_denied && std::ranges::find(now.held, path) == now.held.end();
  });
  for (const std::string& path : now.held) {
    if (std::ranges::find(all.denied, path) == all.denied.end()) {
      all.held.push_back(path);
    }
  }
  add_missing(all.denied, now.denied);
}

}  // namespace

Result<Visit> visit(kernel::Filters& filters, Shielding* shielding, const Site& site, VisitMode mode,
                    const Clock& clock) {
  Visit made;
  for (;; ++made.attempts) {
    const container::Observed now = TRY(kernel::observe(filters, site.cgroups));
    if (shielding != nullptr) {
      made.shield = shielding->settle(site.guarded, site.cgroups, site.parent, now);
    }
    made.left = container::compare(*site.guarded.owed, now);
    made.after = container::effective(container::without_shields(now));
    if (made.attempts == 1) {
      made.drift = made.left;
      made.before = made.after;
    } else {
      add_drift(made.left, made.drift);
    }
    const container::Drift ours = container::compare(*site.guarded.healed, now);
    if (made.attempts > 1 && ours.is_none() && made.healed_at == 0) {
      made.healed_at = clock();  // another writer was faster, and has allowed it again
    }
    if (mode == VisitMode::observe_only || ours.is_none() || made.attempts == kMostAttempts) {
      return made;
    }
    container::Repair repair = container::plan_repair(now, ours);
    made.refused = std::move(repair.refused);
    if (repair.plan.steps.empty()) {
      return made;
    }
    const Result<void> done = kernel::carry_out(filters, site.cgroups, repair.plan);
    if (!done && !kernel::is_overtaken(done.error())) {
      return std::unexpected(done.error());
    }
    if (done) {
      made.healed_at = clock();
      std::ranges::move(repair.plan.steps, std::back_inserter(made.steps));
    }
  }
}

}  // namespace hf::guard
