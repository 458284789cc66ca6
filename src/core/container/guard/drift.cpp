#include "core/container/guard/drift.h"

#include <algorithm>
#include <optional>

namespace hf::container {
namespace {

device::Rule rule_for(const device::Request& request) {
  const device::Device& device = request.device;
  return {{device.kind, device::Span{device.major, device.major}, device::Span{device.minor, device.minor}},
          request.access};
}

// The first gates that refuse a request: one of the container's own, and one above it.
struct Refusal {
  const Gate* own = nullptr;
  const Gate* above = nullptr;
  bool is_unclear = false;
};

Refusal refusal_of(const Observed& observed, const device::Request& request) {
  Refusal refusal;
  for (const Gate& gate : observed.gates) {
    if (!gate.meaning) {
      refusal.is_unclear = true;
      continue;
    }
    if (gate.meaning->allows(request)) {
      refusal.is_unclear = refusal.is_unclear || !gate.doubt.empty();
      continue;
    }
    const Gate*& first = gate.is_own ? refusal.own : refusal.above;
    first = first == nullptr ? &gate : first;
  }
  return refusal;
}

bool has_shield(const Observed& observed) {
  return std::ranges::any_of(observed.gates, [](const Gate& gate) { return gate.shield.has_value(); });
}

}  // namespace

Observed without_shields(Observed observed) {
  std::erase_if(observed.gates, [](const Gate& gate) { return gate.shield.has_value(); });
  return observed;
}

Drift compare(const Entitlement& owed, const Observed& observed) {
  Drift drift;
  const std::optional<Observed> unshielded =
      has_shield(observed) ? std::optional(without_shields(observed)) : std::nullopt;
  const Observed& rules = unshielded ? *unshielded : observed;
  for (const OwedNode& node : owed.nodes) {
    if (!node.device) {
      continue;  // its driver is not loaded: there is nothing to allow
    }
    const device::Request request = request_for(node);
    const Refusal refusal = refusal_of(rules, request);
    if (refusal.own == nullptr && refusal.above == nullptr) {
      if (refusal.is_unclear) {
        drift.unclear.push_back(node.path);
      }
      continue;
    }
    if (judge(rules, request).kind == Answer::Kind::allow) {
      continue;  // another writer's program overrules the one that refuses
    }
    drift.denied.push_back(node.path);
    if (unshielded && judge(observed, request).kind == Answer::Kind::allow) {
      drift.held.push_back(node.path);
    }
    if (refusal.above != nullptr) {
      drift.above.push_back(node.path + ": refused by " + name_of(*refusal.above) + " above it");
    } else {
      drift.missing.push_back(rule_for(request));
    }
  }
  return drift;
}

Repair plan_repair(const Observed& observed, const Drift& drift, const bpf::Generate& generate) {
  Repair repair;
  repair.refused = drift.above;
  if (drift.missing.empty()) {
    return repair;
  }
  Result<Plan> all = plan_change(observed, {device::Verb::allow, drift.missing}, generate);
  if (all) {
    repair.plan = *std::move(all);
    return repair;
  }
  // At least one rule cannot be granted. The others are planned together, so that one program has all of them.
  device::RuleSet possible;
  for (const device::Rule& rule : drift.missing) {
    const Result<Plan> alone = plan_change(observed, {device::Verb::allow, {rule}}, generate);
    if (alone) {
      possible.push_back(rule);
    } else {
      repair.refused.push_back(alone.error().message);
    }
  }
  Result<Plan> rest = plan_change(observed, {device::Verb::allow, possible}, generate);
  if (!possible.empty() && rest) {
    repair.plan = *std::move(rest);
  }
  return repair;
}

}  // namespace hf::container
