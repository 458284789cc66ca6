#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "core/base/text.h"
#include "core/report/rules_report.h"
#include "machine.h"
#include "output.h"
#include "services/rules/change.h"

namespace hf::programs {
namespace {

struct ChangeWords {
  std::string target;
  std::vector<std::string> rules;
  bool dry_run = false;
  Output output;
};

// 'c 195:0 rw' as one word of the shell, or as three.
Result<device::RuleSet> parse_rules(const std::vector<std::string>& words) {
  device::RuleSet rules;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string text = words[i];
    const bool is_type = text == "b" || text == "c";
    if (is_type && i + 2 < words.size()) {
      text += " " + words[i + 1] + " " + words[i + 2];
      i += 2;
    }
    rules.push_back(TRY(device::parse_rule(text)));
    if (rules.back().match == device::Match::exactly) {
      return fail(std::errc::invalid_argument, "parse rule " + quote(text) + ": 'exactly' can be read, not written");
    }
  }
  return rules;
}

int run(const ChangeWords& words, device::Verb verb) {
  const Result<device::RuleSet> parsed = parse_rules(words.rules);
  if (!parsed) {
    return complain(parsed.error());
  }
  const Result<rules::NamedTarget> target = target_of(words.target);
  if (!target) {
    return complain(target.error());
  }
  rules::Node node;
  const rules::Mode mode = words.dry_run ? rules::Mode::dry_run : rules::Mode::carry_out;
  const Result<report::ChangeReport> done = rules::change(node, *target, {verb, *parsed}, mode);
  if (!done) {
    const int status = complain(done.error());
    return done.error().code == container::kRefusedAbove ? kProblem : status;
  }
  print(words.output.is_json() ? render_json(*done) : render_text(*done));
  if (done->outcome == report::Outcome::unproven) {
    return kCannotTell;
  }
  return done->outcome == report::Outcome::undone ? kProblem : kFine;
}

void add_change(CLI::App& app, device::Verb verb, int& status) {
  const auto words = std::make_shared<ChangeWords>();
  CLI::App* command = verb == device::Verb::allow
                          ? app.add_subcommand("grant", "let a process's cgroup, or a cgroup, open devices")
                          : app.add_subcommand("revoke", "take devices away from a process's cgroup, or a cgroup");
  command->add_option("TARGET", words->target, "a container, pid:N or cgroup:PATH")->required();
  command->add_option("RULE", words->rules, "such as 'c 195:0 rw', 'b 8:* r', 'c 195:0-7 rwm'")->required();
  command->add_flag("--dry-run", words->dry_run, "print the plan, change nothing");
  add_output(*command, words->output);
  command->footer(
      "The plan is carried out, read back and proven. Only the target's own cgroup is changed: a gate above it that\n"
      "refuses is named, never widened.\n"
      "exit: 0 done, or so already; 1 a gate above refuses, or somebody undid it since; 2 usage, or it could not be "
      "done");
  command->callback([words, verb, &status] { status = run(*words, verb); });
}

}  // namespace

void add_grant_and_revoke(CLI::App& app, int& status) {
  add_change(app, device::Verb::allow, status);
  add_change(app, device::Verb::deny, status);
}

}  // namespace hf::programs
