#include "core/container/gate/change.h"

#include <algorithm>

#include "core/bpf/analyse.h"
#include "core/bpf/generate.h"
#include "core/bpf/producer.h"
#include "core/device/compare.h"
#include "core/device/shortest.h"
#include "core/device/v1_plan.h"

namespace hf::container {
namespace {

using device::RuleSet;
using device::Table;
using device::Verb;

std::string list_of(const RuleSet& rules) {
  std::string text;
  for (const device::Rule& rule : rules) {
    text += (text.empty() ? "" : ", ") + to_string(rule);
  }
  return text;
}

// What a device allows after a grant: the old access bits, the new ones, and their unions, as cgroup v1 merges them: a
// process that may read and is granted w may open for both.
device::AccessSet joined(device::AccessSet had, device::AccessSet granted) {
  device::AccessSet result = had | granted;
  for (unsigned old = 1; old <= unsigned(device::Access::all); ++old) {
    for (unsigned more = 1; more <= unsigned(device::Access::all); ++more) {
      if (had.allows(device::Access(old)) && granted.allows(device::Access(more))) {
        result = result | device::AccessSet::exactly(device::Access(old | more));
      }
    }
  }
  return result;
}

Result<void> check_gates_above(const Observed& observed, const Table& asked) {
  for (const Gate& gate : observed.gates) {
    if (!gate.is_own && gate.meaning && !gate.meaning->contains(device::askable(asked))) {
      return fail(Reason::refused_above, "refused above by " + name_of(gate) + ", which does not allow " +
                                             list_of(device::compare(asked, *gate.meaning).only_left) +
                                             "; a gate above the target is never widened");
    }
  }
  return {};
}

Result<void> check_limits_above(const Observed& observed, const device::CgroupWrite& write) {
  for (const V1Limit& limit : observed.v1_above) {
    if (write.rule && !parent_permits(limit.list, *write.rule)) {
      return fail(Reason::refused_above, "refused above by v1:" + limit.where + ", which does not allow " +
                                             to_string(*write.rule) + "; a gate above the target is never widened");
    }
  }
  return {};
}

Result<void> plan_v1_gate(const Observed& observed, const Gate& gate, const Change& change, Plan& plan) {
  const device::V1Plan writes = change.verb == Verb::allow ? TRY(plan_v1_grant(*gate.list, change.rules))
                                                           : TRY(plan_v1_revoke(*gate.list, change.rules));
  for (const device::CgroupWrite& write : writes) {
    if (write.verb == Verb::allow) {
      TRY(check_limits_above(observed, write));
    }
    plan.steps.emplace_back(WriteV1{gate.where, write});
  }
  return {};
}

Result<ReplaceProgram> plan_replacement(const Gate& gate, const Change& change, const Table& covered,
                                        const bpf::Generate& generate) {
  if (!gate.meaning || gate.may_override) {
    const bpf::Override override = change.verb == Verb::allow ? bpf::Override{covered, {}} : bpf::Override{{}, covered};
    Result<bpf::Code> code = gate.program->code.empty()
                                 ? fail(std::errc::operation_not_supported, "the kernel does not give out its code")
                                 : bpf::patch(gate.program->code, override);
    if (!code) {
      const std::string why = gate.meaning ? "it overrules other programs" : gate.meaning.error().why;
      return fail(code.error().code, name_of(gate) + " can neither be read (" + why +
                                         ") nor kept: " + code.error().message + "; nothing was changed");
    }
    const bool allows = change.verb == Verb::allow;
    return ReplaceProgram{gate.where,
                          *gate.program->id,
                          gate.owner,
                          *std::move(code),
                          allows ? Table() : covered,
                          allows ? covered : Table(),
                          true};
  }
  Table wanted = change.verb == Verb::allow ? Table::combine(*gate.meaning, covered, joined) : *gate.meaning - covered;
  bpf::Code code = TRY(generate(wanted));
  return ReplaceProgram{gate.where,    *gate.program->id, gate.owner, std::move(code),
                        *gate.meaning, std::move(wanted), false};
}

// The meaning of a gate for these requests only: a program that cannot be analysed as a whole may be clear about them.
bpf::Readable<Table> meaning_for(const Gate& gate, const Table& requests) {
  if (gate.meaning || !gate.program || gate.program->code.empty()) {
    return gate.meaning;
  }
  return bpf::analyse_within(gate.program->code, requests);
}

// What all of the cgroup's own programs except `left_out` let through together; absent where there is no other.
std::optional<Table> meaning_beside(const Observed& observed, const Gate& left_out, const Table& granted,
                                    const std::vector<const Gate*>& detached) {
  std::optional<Table> together;
  for (const Gate& gate : observed.gates) {
    if (&gate == &left_out || !gate.is_own || !gate.program || !gate.meaning ||
        std::ranges::find(detached, &gate) != detached.end()) {
      continue;
    }
    const Table widened = Table::combine(*gate.meaning, granted, joined);
    together = together ? *together & widened : widened;
  }
  return together;
}

bool is_own_program(const Gate& gate) { return gate.is_own && gate.program.has_value() && !gate.shield; }

// A writer that attaches its program again and again beside a repaired one would fill the cgroup (kernel: 64 programs).
// Redundant programs are detached, but only our own: the writer may be about to detach those it found, and with the
// last one every limit would be gone.
void detach_redundant_programs(const Observed& observed, const Table& granted, const std::vector<const Gate*>& replaced,
                               Plan& plan) {
  const auto programs = std::size_t(
      std::ranges::count_if(observed.gates, [](const Gate& gate) { return gate.is_own && gate.program.has_value(); }));
  std::vector<const Gate*> detached;
  for (const Gate& gate : observed.gates) {
    const bool is_ours = is_own_program(gate) && gate.owner == bpf::kOurName && gate.meaning &&
                         gate.program->attachment == Attachment::several;
    if (!is_ours || std::ranges::find(replaced, &gate) != replaced.end()) {
      continue;
    }
    const std::optional<Table> beside = meaning_beside(observed, gate, granted, detached);
    if (beside && gate.meaning->contains(*beside)) {
      plan.steps.emplace_back(DetachProgram{gate.where, *gate.program->id, gate.owner, programs - detached.size()});
      detached.push_back(&gate);
    }
  }
}

// Every program of the cgroup itself must allow the request: one that refuses is enough.
Result<void> plan_v2_grant(const Observed& observed, const Change& change, const bpf::Generate& generate, Plan& plan) {
  const Table asked = covered_by(change);
  std::vector<const Gate*> replaced;
  for (const Gate& gate : observed.gates) {
    if (!is_own_program(gate)) {
      continue;
    }
    const bpf::Readable<Table> meaning = meaning_for(gate, asked);
    if (meaning && meaning->contains(device::askable(asked))) {
      continue;
    }
    plan.steps.emplace_back(TRY(plan_replacement(gate, change, asked, generate)));
    replaced.push_back(&gate);
  }
  if (!replaced.empty()) {  // beside the replacements, programs of ours may be redundant
    detach_redundant_programs(observed, asked, replaced, plan);
  }
  return {};
}

// Kernel: a program above that was not attached with ALLOW_MULTI no longer counts once the cgroup has one of its own.
// The new program must therefore start from what those let through.
Result<Table> allowed_by_overridden_programs(const Observed& observed) {
  Table left = Table::everything();
  for (const Gate& gate : observed.gates) {
    if (!gate.program || gate.program->attachment == Attachment::several) {
      continue;
    }
    if (!gate.meaning) {
      return fail(std::errc::operation_not_supported, "attach a program below " + name_of(gate) +
                                                          ", which would switch it off, and it cannot be read: " +
                                                          gate.meaning.error().why + "; nothing was changed");
    }
    left = left & *gate.meaning;
  }
  return left;
}

// Needed whichever gate refuses the device, as the shield would overrule it.
void plan_shield_removal(const Observed& observed, const Table& revoked, Plan& plan) {
  for (const Gate& gate : observed.gates) {
    for (const ShieldEntry& entry : gate.shield ? gate.shield->entries : std::vector<ShieldEntry>()) {
      const device::RuleSet rule = {rule_for(entry)};
      if (!(Table::of_rules(rule) & revoked).allows_nothing()) {
        plan.steps.emplace_back(RemoveShieldEntry{gate.where, *gate.program->id, entry.device});
      }
    }
  }
}

bool is_foreign_override(const Gate& gate) { return gate.may_override && !gate.shield; }

Result<void> plan_v2_revoke(const Observed& observed, const Change& change, const std::string& where,
                            const bpf::Generate& generate, Plan& plan) {
  const Table revoked = covered_by(change);
  const Gate* own = nullptr;
  const Gate* readable = nullptr;
  for (const Gate& gate : observed.gates) {
    if (!gate.program) {
      continue;
    }
    const bpf::Readable<Table> meaning = meaning_for(gate, revoked);
    if (meaning && device::askable(*meaning & revoked).allows_nothing() &&
        std::ranges::none_of(observed.gates, is_foreign_override)) {
      return {};  // refused already
    }
    if (gate.is_own && !gate.shield) {
      readable = readable == nullptr && gate.meaning ? &gate : readable;
      own = &gate;
    }
  }
  if (own != nullptr) {
    plan.steps.emplace_back(TRY(plan_replacement(readable != nullptr ? *readable : *own, change, revoked, generate)));
    return {};
  }
  const Table before = TRY(allowed_by_overridden_programs(observed));
  bpf::Code code = TRY(generate(before - revoked));
  plan.steps.emplace_back(AttachProgram{where, std::move(code), change.rules});
  return {};
}

}  // namespace

Table covered_by(const Change& change) {
  std::vector<device::Box> boxes;
  for (const device::Rule& rule : change.rules) {
    for (device::Box box : device::boxes_of({&rule, 1})) {
      box.allowed = change.verb == Verb::deny ? device::AccessSet::touching(rule.access) : box.allowed;
      boxes.push_back(box);
    }
  }
  return Table::of_boxes(boxes);
}

Result<Plan> plan_change(const Observed& observed, const Change& change, const bpf::Generate& generate) {
  Plan plan;
  if (change.verb == Verb::allow) {
    TRY(check_gates_above(observed, covered_by(change)));
  }
  if (change.verb == Verb::deny) {
    plan_shield_removal(observed, covered_by(change), plan);
  }
  const auto own_v1 = std::ranges::find_if(observed.gates, [](const Gate& gate) { return gate.is_own && gate.list; });
  if (own_v1 != observed.gates.end()) {
    TRY(plan_v1_gate(observed, *own_v1, change, plan));
  }
  if (change.verb == Verb::allow) {
    TRY(plan_v2_grant(observed, change, generate, plan));
  } else if (own_v1 == observed.gates.end()) {
    if (!observed.v2_where) {
      return fail(std::errc::operation_not_permitted,
                  "the root cgroup is the host itself: its rules are never changed");
    }
    TRY(plan_v2_revoke(observed, change, *observed.v2_where, generate, plan));
  }
  for (const Gate& gate : observed.gates) {
    if (!gate.is_own && !gate.meaning) {
      plan.notes.push_back(name_of(gate) + " above cannot be read: " + gate.meaning.error().why);
    }
  }
  return plan;
}

bool is_in_force(const Observed& observed, const Change& change) {
  const Table covered = covered_by(change);
  if (change.verb == Verb::deny) {
    Table left = Table::everything();
    for (const Gate& gate : observed.gates) {
      if (gate.meaning) {
        left = (left & *gate.meaning) | (gate.overrides - left);
      } else if (gate.may_override) {
        left = Table::everything();
      }
    }
    return device::askable(left & covered).allows_nothing();
  }
  const Table asked = device::askable(covered);
  return std::ranges::all_of(observed.gates,
                             [&](const Gate& gate) { return !gate.meaning || gate.meaning->contains(asked); });
}

std::string to_string(const Step& step) {
  if (const WriteV1* write = std::get_if<WriteV1>(&step)) {
    return "write '" + to_string(write->write) + "' to " + write->where + "/" + file_of(write->write.verb);
  }
  if (const AttachProgram* attach = std::get_if<AttachProgram>(&step)) {
    return "attach a program to " + attach->where + " that refuses " + list_of(attach->less);
  }
  if (const RemoveShieldEntry* remove = std::get_if<RemoveShieldEntry>(&step)) {
    return "remove " + to_string(remove->device) + " from the shield on " + remove->where;
  }
  const auto name = [](ProgramId id, const std::string& owner) {
    return "program:" + std::to_string(id.value) + (owner.empty() ? "" : " (" + owner + ")");
  };
  if (const DetachProgram* detach = std::get_if<DetachProgram>(&step)) {
    return "detach " + name(detach->old, detach->owner) + " from " + detach->where +
           ": the programs beside it refuse all that it refuses, except what is granted";
  }
  const auto& replace = std::get<ReplaceProgram>(step);
  const device::Difference difference = device::compare(replace.after, replace.before);
  std::string text = "replace " + name(replace.old, replace.owner) + " of " + replace.where + ":";
  text += difference.only_left.empty() ? "" : " it will also allow " + list_of(difference.only_left);
  text += difference.only_right.empty() ? "" : " it will refuse " + list_of(difference.only_right);
  return text + (replace.keeps_original ? "; its own code stays, behind these rules" : "");
}

}  // namespace hf::container
