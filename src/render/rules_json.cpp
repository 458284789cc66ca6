#include <nlohmann/json.hpp>

#include "core/device/shortest.h"
#include "render/json_string.h"
#include "render/rule_memo.h"
#include "render/rules.h"
#include "render/time.h"

namespace hf::report {
namespace {

using Json = nlohmann::ordered_json;
using container::Gate;

constexpr int kVersion = 1;  // of the schema in docs/JSON.md

// Names of programs and paths of cgroups may hold any bytes.
Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json number_of(const std::optional<device::Span>& span) {
  if (!span) {
    return nullptr;
  }
  return span->is_point() ? Json(span->first) : Json{span->first, span->last};
}

Json to_json(const device::Rule& rule) {
  Json json = {{"type", std::string(1, rule.selector.kind ? device::kind_character(*rule.selector.kind) : 'a')},
               {"major", number_of(rule.selector.major)},
               {"minor", number_of(rule.selector.minor)},
               {"access", to_string(rule.access)}};
  if (rule.match == device::Match::exactly) {
    json["exactly"] = true;
  }
  return json;
}

Json to_json(const device::RuleSet& rules) {
  Json list = Json::array();
  for (const device::Rule& rule : rules) {
    list.push_back(to_json(rule));
  }
  return list;
}

std::string name_of(container::Attachment attachment) {
  switch (attachment) {
    case container::Attachment::several: return "several";
    case container::Attachment::single: return "single";
    case container::Attachment::overridable: return "overridable";
  }
  return "";
}

Json to_json(const container::AttachedProgram& program) {
  return {{"id", program.id ? Json(program.id->value) : Json(nullptr)},
          {"name", text_or_null(program.name)},
          {"uid", program.uid ? Json(*program.uid) : Json(nullptr)},
          {"loaded_at", program.loaded_at ? Json(render_time(*program.loaded_at)) : Json(nullptr)},
          {"attachment", name_of(program.attachment)}};
}

Json to_json(const container::Shield& shield) {
  Json list = Json::array();
  for (const container::ShieldEntry& entry : shield.entries) {
    list.push_back({{"rule", to_string(rule_for(entry))}, {"count", entry.count}});
  }
  return {{"entries", list}};
}

Json to_json(const Gate& gate, RuleMemo& memo) {
  const std::string why = gate.meaning ? gate.doubt : gate.meaning.error().why;
  return {{"hierarchy", gate.hierarchy == container::Hierarchy::v1 ? "v1" : "v2"},
          {"cgroup", gate.where.starts_with('/') ? Json(gate.where) : Json(nullptr)},
          {"own", gate.is_own},
          {"owner", text_or_null(gate.owner)},
          {"program", gate.program ? to_json(*gate.program) : Json(nullptr)},
          {"exact", why.empty()},
          {"why", text_or_null(why)},
          {"rules", gate.meaning ? to_json(memo.rules_of(*gate.meaning)) : Json(nullptr)},
          {"overrides", gate.meaning ? to_json(memo.rules_of(gate.overrides)) : Json(nullptr)},
          {"shield", gate.shield ? to_json(*gate.shield) : Json(nullptr)}};
}

Json to_json(const std::vector<Gate>& gates) {
  Json list = Json::array();
  RuleMemo memo;
  for (const Gate& gate : gates) {
    list.push_back(to_json(gate, memo));
  }
  return list;
}

Json to_json(const TargetRules& target) {
  return {{"version", kVersion},
          {"target", target.target},
          {"source", target.source == Source::read ? "read" : "probe"},
          {"gates", to_json(target.gates)},
          {"effective",
           {{"exact", target.effective.exact},
            {"why", text_or_null(target.effective.why)},
            {"rules", to_json(device::shortest_rules(target.effective.table))}}}};
}

std::string name_of(container::Answer::Kind kind) {
  switch (kind) {
    case container::Answer::Kind::allow: return "allow";
    case container::Answer::Kind::deny: return "deny";
    case container::Answer::Kind::unknown: return "unknown";
  }
  return "";
}

std::string name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::planned: return "planned";
    case Outcome::done: return "done";
    case Outcome::already: return "already";
    case Outcome::unproven: return "unproven";
    case Outcome::undone: return "undone";
  }
  return "";
}

}  // namespace

std::string render_json(const std::vector<TargetRules>& targets) {
  if (targets.size() == 1) {
    return render_document(to_json(targets.front()));
  }
  Json list = Json::array();
  for (const TargetRules& target : targets) {
    list.push_back(to_json(target));
  }
  return render_document(list);
}

std::string render_json(const std::vector<Gate>& gates) { return render_document(to_json(gates)); }

std::string render_json(const HostRules& host) {
  return render_document({{"version", kVersion},
                          {"layout", host.layout},
                          {"gates", to_json(host.gates)},
                          {"hiding", host.hiding},
                          {"too_deep", host.too_deep}});
}

std::string render_json(const TargetDifference& difference) {
  return render_document({{"version", kVersion},
                          {"left", difference.left},
                          {"right", difference.right},
                          {"same", difference.difference.none()},
                          {"exact", difference.doubt.empty()},
                          {"why", text_or_null(difference.doubt)},
                          {"only_left", to_json(difference.difference.only_left)},
                          {"only_right", to_json(difference.difference.only_right)}});
}

std::string render_json(const std::string& target, const std::vector<AskedQuestion>& questions) {
  Json answers = Json::array();
  for (const AskedQuestion& asked : questions) {
    const bool denied = asked.answer.kind == container::Answer::Kind::deny;
    const bool unknown = asked.answer.kind == container::Answer::Kind::unknown;
    answers.push_back({{"question", asked.question},
                       {"answer", name_of(asked.answer.kind)},
                       {"gate", denied ? Json(asked.answer.detail) : Json(nullptr)},
                       {"why", unknown ? Json(asked.answer.detail) : Json(nullptr)}});
  }
  return render_document({{"version", kVersion}, {"target", target}, {"answers", answers}});
}

std::string render_json(const ChangeReport& change) {
  Json steps = Json::array();
  for (const container::Step& step : change.plan.steps) {
    steps.push_back(to_string(step));
  }
  return render_document({{"version", kVersion},
                          {"target", change.target},
                          {"verb", change.change.verb == device::Verb::allow ? "grant" : "revoke"},
                          {"rules", to_json(change.change.rules)},
                          {"outcome", name_of(change.outcome)},
                          {"why", text_or_null(change.detail)},
                          {"attempts", change.attempts},
                          {"steps", steps},
                          {"notes", change.plan.notes}});
}

}  // namespace hf::report
