#include "adapters/config/guard_options.h"

#include <algorithm>
#include <array>

#include "core/base/suggest.h"
#include "core/base/text.h"

namespace hf::config {
namespace {

using container::PolicyRule;

Result<std::map<std::string, std::string>> labels_of(Yaml map, const std::string& where) {
  if (!map.is_map()) {
    return malformed(where + " wants labels with values");
  }
  TRY(check_once(map, where));
  std::map<std::string, std::string> labels;
  for (const auto& [name, value] : map.members()) {
    if (!value.is_scalar()) {
      return malformed(where + ": label " + quote(name.scalar()) + " wants a value");
    }
    labels[name.scalar()] = value.scalar();
  }
  return labels;
}

bool is_pattern(const std::string& text) { return text.find_first_of("*?[\\") != std::string::npos; }

Result<void> check_engine(const PolicyRule& rule, const std::string& where) {
  const std::string engine = rule.match.engine.value_or("*");
  if (is_pattern(engine) || std::ranges::find(container::kEngineNames, engine) != container::kEngineNames.end()) {
    return {};
  }
  const std::vector<std::string> names(container::kEngineNames.begin(), container::kEngineNames.end());
  return malformed(where + ": no engine " + quote(engine) + suggest(engine, names));
}

Result<PolicyRule> parse_rule(Yaml entry, std::size_t index) {
  const std::string where = "guard.rules[" + std::to_string(index) + "]";
  TRY(check_keys(entry, where, {"class", "engine", "namespace", "container", "labels", "mode"}));
  PolicyRule rule;
  const std::array<std::pair<const char*, std::optional<std::string>*>, 4> fields = {
      {{"class", &rule.match.device_class},
       {"engine", &rule.match.engine},
       {"namespace", &rule.match.name_space},
       {"container", &rule.match.container}}};
  for (const auto& [key, field] : fields) {
    if (entry[key]) {
      *field = TRY(scalar_of(entry[key], where + "." + key));
    }
  }
  TRY(check_engine(rule, where));
  if (entry["labels"]) {
    rule.match.labels = TRY(labels_of(entry["labels"], where + ".labels"));
  }
  if (!entry["mode"]) {
    return malformed(where + " wants a mode");
  }
  const Result<container::Mode> mode = container::parse_mode(TRY(scalar_of(entry["mode"], where + ".mode")));
  if (!mode) {
    return malformed(where + ": " + mode.error().message);
  }
  rule.mode = *mode;
  return rule;
}

Result<unsigned> parse_count(Yaml value, const std::string& where, unsigned most) {
  const std::optional<unsigned> number = parse_number<unsigned>(TRY(scalar_of(value, where)));
  if (!number || *number == 0 || *number > most) {
    return malformed(where + " wants a number from 1 to " + std::to_string(most));
  }
  return *number;
}

Result<void> parse_limits(Yaml node, container::Limits& limits) {
  TRY(check_keys(node, "guard.limits", {"burst", "per_second", "longest_wait_ms"}));
  if (node["burst"]) {
    limits.burst = TRY(parse_count(node["burst"], "guard.limits.burst", 1'000'000));
  }
  if (node["per_second"]) {
    limits.per_second = TRY(parse_count(node["per_second"], "guard.limits.per_second", 100'000));
  }
  if (node["longest_wait_ms"]) {
    limits.longest_wait =
        std::chrono::milliseconds(TRY(parse_count(node["longest_wait_ms"], "guard.limits.longest_wait_ms", 3'600'000)));
  }
  return {};
}

// "none" disables a listener.
Result<std::string> parse_listener(Yaml value, const std::string& where) {
  const std::string text = TRY(scalar_of(value, where));
  return text == "none" ? std::string() : text;
}

}  // namespace

Result<void> parse_guard(Yaml node, container::Policy& policy) {
  if (!node) {
    return {};
  }
  TRY(check_keys(node, "guard", {"mode", "shield", "rules", "limits"}));
  if (node["mode"]) {
    const Result<container::Mode> mode = container::parse_mode(TRY(scalar_of(node["mode"], "guard.mode")));
    if (!mode) {
      return malformed("guard: " + mode.error().message);
    }
    policy.mode = *mode;
  }
  if (node["shield"]) {
    const std::string text = TRY(scalar_of(node["shield"], "guard.shield"));
    // Helm reads "off" as YAML 1.1 does and writes "false".
    const Result<container::ShieldUse> use = container::parse_shield_use(text == "false" ? "off" : text);
    if (!use) {
      return malformed("guard: " + use.error().message);
    }
    policy.shield = *use;
  }
  const Yaml rules = node["rules"];
  if (rules && !rules.is_list()) {
    return malformed("guard.rules wants a list");
  }
  std::vector<PolicyRule> first;
  for (const Yaml rule : rules.elements()) {
    first.push_back(TRY(parse_rule(rule, first.size())));
  }
  policy.rules.insert(policy.rules.begin(), first.begin(), first.end());
  return node["limits"] ? parse_limits(node["limits"], policy.limits) : Result<void>();
}

Result<void> check_classes(std::span<const PolicyRule> rules, const device::DeviceClasses& classes) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::string name = rules[i].match.device_class.value_or("*");
    const Result<void> known = is_pattern(name) ? Result<void>() : device::check_class(classes, name);
    if (!known) {
      return malformed("guard.rules[" + std::to_string(i) + "]: " + known.error().message);
    }
  }
  return {};
}

Result<void> parse_web(Yaml node, WebSettings& web) {
  if (!node) {
    return {};
  }
  TRY(check_keys(node, "web", {"listen", "socket", "details"}));
  TRY(read_switch(node, "web", "details", web.shows_details));
  if (node["listen"]) {
    web.listen = TRY(parse_listener(node["listen"], "web.listen"));
    if (!web.listen.empty() && web.listen.rfind(':') == std::string::npos) {
      return malformed("web.listen: " + quote(web.listen) + " is not address:port");
    }
  }
  if (node["socket"]) {
    web.socket = TRY(parse_listener(node["socket"], "web.socket"));
    if (!web.socket.empty() && !web.socket.starts_with('/')) {
      return malformed("web.socket: " + quote(web.socket) + " is not an absolute path");
    }
  }
  return {};
}

Result<void> parse_journal(Yaml node, JournalSettings& journal) {
  if (!node) {
    return {};
  }
  TRY(check_keys(node, "journal", {"directory", "folder", "megabytes"}));
  const char* const key = node["directory"] ? "directory" : "folder";  // its earlier name
  if (node[key]) {
    journal.directory = TRY(scalar_of(node[key], "journal.directory"));
    if (!journal.directory.starts_with('/')) {
      return malformed("journal.directory: " + quote(journal.directory) + " is not an absolute path");
    }
  }
  if (node["megabytes"]) {
    journal.size = std::uint64_t(TRY(parse_count(node["megabytes"], "journal.megabytes", 4096))) << 20U;
  }
  return {};
}

Result<void> parse_trust_rules(Yaml list, std::vector<container::TrustRule>& rules) {
  if (list && !list.is_list()) {
    return malformed("trust wants a list");
  }
  for (std::size_t i = 0; const Yaml entry : list.elements()) {
    const std::string where = "trust[" + std::to_string(i++) + "]";
    TRY(check_keys(entry, where, {"namespace", "pod", "container"}));
    if (!entry["namespace"]) {
      return malformed(where + " wants a namespace: a user who may create pods chooses their names");
    }
    container::TrustRule& rule = rules.emplace_back();
    rule.name_space = TRY(scalar_of(entry["namespace"], where + ".namespace"));
    if (entry["pod"]) {
      rule.pod = TRY(scalar_of(entry["pod"], where + ".pod"));
    }
    if (entry["container"]) {
      rule.container = TRY(scalar_of(entry["container"], where + ".container"));
    }
  }
  return {};
}

}  // namespace hf::config
