#include <memory>
#include <string>
#include <vector>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include "commands.h"
#include "core/base/text.h"
#include "core/report/rules_report.h"
#include "programs/console/output.h"
#include "render/rules.h"
#include "services/rules/change.h"
#include "target.h"

namespace hf::programs {
namespace {

struct ChangeOptions {
  std::string target;
  std::vector<std::string> rules;
  bool dry_run = false;
  Output output;
};

// 'c 195:0 rw' may be one argument or three.
Result<device::RuleSet> parse_rules(const std::vector<std::string>& arguments) {
  device::RuleSet rules;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string text = arguments[i];
    const bool is_type = text == "b" || text == "c";
    if (is_type && i + 2 < arguments.size()) {
      text += " " + arguments[i + 1] + " " + arguments[i + 2];
      i += 2;
    }
    rules.push_back(TRY(device::parse_rule(text)));
    if (rules.back().match == device::Match::exactly) {
      return fail(std::errc::invalid_argument, "parse rule " + quote(text) + ": 'exactly' can be read, not written");
    }
  }
  return rules;
}

int run(const ChangeOptions& options, device::Verb verb) {
  const Result<device::RuleSet> parsed = parse_rules(options.rules);
  if (!parsed) {
    return complain(parsed.error());
  }
  if (::geteuid() != 0) {  // without it no container can be found, nor changed
    return complain({std::errc::operation_not_permitted, "change device rules"});
  }
  const Result<rules::NamedTarget> target = target_of(options.target);
  if (!target) {
    return complain(target.error());
  }
  host::HostOpener opener;
  const Result<report::ChangeReport> done = rules::change(opener, *target, {verb, *parsed}, run_mode(options.dry_run));
  if (!done) {
    const int status = complain(done.error());
    return done.error().reason == Reason::refused_above ? kProblem : status;
  }
  print(options.output.is_text() ? render_text(*done) : in_format(options.output, render_json(*done)));
  if (done->outcome == report::Outcome::unproven) {
    return kCannotTell;
  }
  const bool would_change = options.dry_run && done->outcome == report::Outcome::planned;
  return would_change || done->outcome == report::Outcome::undone ? kProblem : kFine;
}

void add_change(CLI::App& app, device::Verb verb, int& status) {
  const auto options = std::make_shared<ChangeOptions>();
  CLI::App* command =
      verb == device::Verb::allow
          ? app.add_subcommand("grant", "let the cgroup of a process, or a cgroup, open devices")
          : app.add_subcommand("revoke", "remove devices from the cgroup of a process, or from a cgroup");
  command->add_option("TARGET", options->target, "a container, pid:N or cgroup:PATH")->required();
  command->add_option("RULE", options->rules, "such as 'c 195:0 rw', 'b 8:* r', 'c 195:0-7 rwm'")->required();
  command->add_flag("--dry-run", options->dry_run, "print the plan, change nothing");
  add_output(*command, options->output);
  command->footer(
      "The plan is carried out, read back and proven. Only the target's own cgroup is changed: a gate above it that\n"
      "refuses is named, never widened.\n"
      "exit: 0 done, or so already; 1 a gate above refuses, another process undid it since, or with --dry-run "
      "something\n"
      "would be changed; 2 usage, or it could not be done");
  command->callback([options, verb, &status] { status = run(*options, verb); });
}

}  // namespace

void add_grant_and_revoke(CLI::App& app, int& status) {
  add_change(app, device::Verb::allow, status);
  add_change(app, device::Verb::deny, status);
}

}  // namespace hf::programs
