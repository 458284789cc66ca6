#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>

#include "core/base/text.h"
#include "core/device/shortest.h"
#include "render/rule_memo.h"
#include "render/rules.h"
#include "render/time.h"

namespace hf::report {
namespace {

using container::Gate;

std::string lines_of(const device::RuleSet& rules, const std::string& prefix) {
  std::string text;
  for (const device::Rule& rule : rules) {
    text += prefix + to_string(rule) + "\n";
  }
  return text.empty() ? prefix + "(nothing)\n" : text;
}

std::string list_of(const device::RuleSet& rules) {
  std::string text;
  for (const device::Rule& rule : rules) {
    text += (text.empty() ? "" : ", ") + to_string(rule);
  }
  return text;
}

std::string attachment_note(container::Attachment attachment) {
  switch (attachment) {
    case container::Attachment::several: return "";
    case container::Attachment::single: return ", attached alone: no other may join";
    case container::Attachment::overridable: return ", gives way to programs of child cgroups";
  }
  return "";
}

std::string heading_of(const Gate& gate) {
  std::string text = name_of(gate) + (gate.is_own ? "" : ", above the target");
  if (gate.program) {
    text += gate.program->name.empty() ? "" : ", named " + gate.program->name;
    text += gate.program->loaded_at ? ", loaded " + render_time(*gate.program->loaded_at) : "";
    text += gate.program->uid ? " by uid " + std::to_string(*gate.program->uid) : "";
    text += attachment_note(gate.program->attachment);
  }
  return text;
}

std::string body_of(const Gate& gate) {
  if (gate.shield && gate.meaning) {
    std::string text = gate.shield->entries.empty() ? "    keeps nothing open for this cgroup\n" : "";
    for (const container::ShieldEntry& entry : gate.shield->entries) {
      text += "    keeps " + to_string(rule_for(entry)) + " open: let through " + std::to_string(entry.count) +
              " times although the rules refused it\n";
    }
    return text;
  }
  if (!gate.meaning) {
    return "    cannot be read as rules: " + gate.meaning.error().why + "\n";
  }
  const std::string overruled = gate.overrides.allows_nothing()
                                    ? ""
                                    : "    and lets through, although a program before it refused:\n" +
                                          lines_of(device::shortest_rules(gate.overrides), "      ");
  return lines_of(device::shortest_rules(*gate.meaning), "    ") + overruled +
         (gate.doubt.empty() ? "" : "    but " + gate.doubt + "\n");
}

std::string verdict_of(const device::RuleSet& rules, bool exact) {
  if (rules.empty()) {
    return exact ? "no device" : "cannot be determined";
  }
  return rules == device::rule_for_everything() ? "all devices" : count_of(rules.size(), "rule");
}

std::string render(const TargetRules& target) {
  const device::RuleSet rules = device::shortest_rules(target.effective.table);
  std::string text = target.target + ": " + verdict_of(rules, target.effective.exact) + ", " +
                     count_of(target.gates.size(), "gate") + (target.effective.exact ? "" : ", NOT EXACT") + "\n";
  text += target.effective.exact ? "" : "  why: " + target.effective.why + "\n";
  for (const Gate& gate : target.gates) {
    text += "  gate " + heading_of(gate) + "\n" + body_of(gate);
  }
  text += std::string("  effective") +
          (target.source == Source::probe ? " (source: probe, devices of this host only)" : "") + "\n";
  return text + lines_of(rules, "    ");
}

// Columns are as wide as their widest cell; the last one is not padded.
std::string render_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      text += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    }
    text += row.back() + "\n";
  }
  return text;
}

std::string summary_of(const Gate& gate, RuleMemo& memo) {
  constexpr std::size_t kShown = 4;
  if (!gate.meaning) {
    return "cannot be read: " + gate.meaning.error().why;
  }
  device::RuleSet rules = memo.rules_of(*gate.meaning);
  if (rules.empty()) {
    return "no device";
  }
  const std::size_t all = rules.size();
  rules.resize(std::min(all, kShown));
  return list_of(rules) + (all > kShown ? " and " + std::to_string(all - kShown) + " more" : "");
}

std::string indented(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += "  " + line + "\n";
  }
  return text;
}

}  // namespace

std::string render_text(const std::vector<TargetRules>& targets) {
  std::string text;
  for (const TargetRules& target : targets) {
    text += (text.empty() ? "" : "\n") + render(target);
  }
  return text;
}

std::string render_text(const HostRules& host) {
  std::string hiding =
      host.hiding == 0
          ? ""
          : count_of(host.hiding, "v1 cgroup") +
                " below the root allow all by default and may hide denies; ask each with rules cgroup:PATH\n";
  hiding += host.too_deep == 0
                ? ""
                : count_of(host.too_deep, "cgroup") + " more than 256 levels deep, and all below, were not looked at\n";
  if (host.gates.empty()) {
    return "no cgroup of this host (" + host.layout + ") lists devices it restricts to\n" + hiding;
  }
  std::vector<std::vector<std::string>> rows = {{"CGROUP", "VERSION", "PROGRAM", "OWNER", "SINCE", "RULES"}};
  RuleMemo memo;
  for (const Gate& gate : host.gates) {
    const bool is_v1 = gate.hierarchy == container::Hierarchy::v1;
    rows.push_back({gate.where, is_v1 ? "v1" : "v2", gate.program ? std::to_string(gate.program->id->value) : "-",
                    gate.owner.empty() ? "-" : gate.owner,
                    gate.program && gate.program->loaded_at ? render_time(*gate.program->loaded_at) : "-",
                    summary_of(gate, memo)});
  }
  return count_of(host.gates.size(), "gate") + " on this host (" + host.layout + ")\n" + render_table(rows) + hiding;
}

std::string render_text(const TargetDifference& difference) {
  const std::string doubt = difference.doubt.empty() ? "" : "NOT EXACT: " + difference.doubt + "\n";
  if (difference.difference.none()) {
    return difference.left + " and " + difference.right + " allow the same\n" + doubt;
  }
  std::string text = difference.left + " and " + difference.right + " differ\n" + doubt;
  if (!difference.difference.only_left.empty()) {
    text += "only " + difference.left + " allows\n" + lines_of(difference.difference.only_left, "  - ");
  }
  if (!difference.difference.only_right.empty()) {
    text += "only " + difference.right + " allows\n" + lines_of(difference.difference.only_right, "  + ");
  }
  return text;
}

std::string render_text(const container::Answer& answer) {
  switch (answer.kind) {
    case container::Answer::Kind::allow: return "allow";
    case container::Answer::Kind::deny: return "deny " + answer.detail;
    case container::Answer::Kind::unknown: return "unknown " + answer.detail;
  }
  return "";
}

std::string render_text(const ChangeReport& change) {
  const bool grants = change.change.verb == device::Verb::allow;
  const std::string what = list_of(change.change.rules) + (grants ? " to " : " from ") + change.target;
  std::vector<std::string> steps;
  steps.reserve(change.plan.steps.size());
  for (const container::Step& step : change.plan.steps) {
    steps.push_back(to_string(step));
  }
  std::string notes;
  for (const std::string& note : change.plan.notes) {
    notes += "note: " + note + "\n";
  }
  switch (change.outcome) {
    case Outcome::already:
      return change.target + (grants ? " already allows " : " already refuses ") + list_of(change.change.rules) +
             ": nothing to do\n" + notes;
    case Outcome::planned:
      return std::string("would ") + (grants ? "grant " : "revoke ") + what + " (dry run, nothing was changed)\n" +
             indented(steps) + notes;
    case Outcome::done:
      return std::string(grants ? "granted " : "revoked ") + what + "; read back and proven\n" + indented(steps) +
             notes;
    case Outcome::unproven:
      return std::string(grants ? "granted " : "revoked ") + what + ", NOT PROVEN: " + change.detail + "\n" +
             indented(steps) + notes;
    case Outcome::undone:
      return std::string(grants ? "granted " : "revoked ") + what + ", but it does not hold: " + change.detail + "\n" +
             indented(steps) + notes;
  }
  return "";
}

}  // namespace hf::report
