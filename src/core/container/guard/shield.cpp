#include "core/container/guard/shield.h"

#include <algorithm>

#include "core/container/gate/change.h"

namespace hf::container {
namespace {

bool is_program(const Gate& gate) { return gate.program.has_value() && !gate.shield; }

// The gate above the container because of which a device gets no entry, or null.
const Gate* find_refusing(const Observed& observed, unsigned parent_depth, const device::Table& asked) {
  const auto refuses = [&](const Gate& gate) {
    return is_program(gate) && depth_of(gate) <= parent_depth && (!gate.meaning || !gate.meaning->contains(asked));
  };
  const auto found = std::ranges::find_if(observed.gates, refuses);
  return found == observed.gates.end() ? nullptr : &*found;
}

}  // namespace

ShieldPlan plan_shield(const Entitlement& owed, const Observed& observed, unsigned parent_depth) {
  ShieldPlan plan;
  const auto between = std::ranges::find_if(
      observed.gates, [&](const Gate& gate) { return is_program(gate) && depth_of(gate) > parent_depth + 1; });
  for (const OwedNode& node : owed.nodes) {
    if (!node.device) {
      continue;  // its driver is not loaded
    }
    if (between != observed.gates.end()) {
      plan.refused.push_back(node.path + ": " + name_of(*between) + " is a program inside the container");
      continue;
    }
    const device::Request request = request_for(node);
    const ShieldEntry entry{request.device, request.access, 0, 0};
    const device::Table asked = device::askable(covered_by({device::Verb::allow, {rule_for(entry)}}));
    if (const Gate* gate = find_refusing(observed, parent_depth, asked)) {
      plan.refused.push_back(node.path + ": " + name_of(*gate) + " above the container " +
                             (gate->meaning ? "refuses it" : "cannot be read"));
      continue;
    }
    const auto same = std::ranges::find(plan.entries, entry.device, &ShieldEntry::device);
    if (same == plan.entries.end()) {
      plan.entries.push_back(entry);
    } else {
      same->access = same->access | entry.access;
    }
  }
  return plan;
}

ShieldCover cover_of(const Entitlement& owed, const Observed& observed) {
  ShieldCover cover;
  device::Table open;
  bool is_there = false;
  for (const Gate& gate : observed.gates) {
    is_there = is_there || gate.shield;
    for (const ShieldEntry& entry : gate.shield ? gate.shield->entries : std::vector<ShieldEntry>()) {
      ++cover.devices;
      cover.count += entry.count;
      open = open | device::Table::of_rules(std::vector{rule_for(entry)});
    }
  }
  const bool has_own_list =
      std::ranges::any_of(observed.gates, [](const Gate& gate) { return gate.list && gate.is_own; });
  const auto left_out = std::ranges::find_if(
      owed.nodes, [&open](const OwedNode& node) { return node.device && !open.allows(request_for(node)); });
  if (has_own_list) {
    cover.why = "cgroup v1 has no shield: its rules are healed";
  } else if (!is_there) {
    cover.why = "no shield is attached above its cgroup";
  } else if (left_out != owed.nodes.end()) {
    cover.why = left_out->path + " has no entry";
  }
  cover.is_on = cover.why.empty();
  return cover;
}

std::string why_not_shielded(const Observed& observed, unsigned parent_depth) {
  for (const Gate& gate : observed.gates) {
    if (is_program(gate) && depth_of(gate) <= parent_depth && gate.program->attachment != Attachment::several) {
      return name_of(gate) + " was attached so that no other program may stand beside or below it";
    }
  }
  return {};
}

}  // namespace hf::container
