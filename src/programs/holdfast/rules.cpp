#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "core/base/suggest.h"
#include "core/base/text.h"
#include "core/device/compare.h"
#include "core/report/rules_report.h"
#include "programs/console/output.h"
#include "render/rules.h"
#include "services/rules/inspect.h"
#include "target.h"

namespace hf::programs {
namespace {

using container::Answer;

struct RulesOptions {
  std::vector<std::string> targets;
  std::vector<std::string> questions;
  std::string left;
  std::string right;
  Output output;
};

// The name of a container selects its first process.
Result<rules::Inspection> open_target(host::HostOpener& opener, const std::string& argument) {
  return rules::Inspection::open(opener, TRY(target_of(argument)));
}

int show_host(const RulesOptions& options) {
  host::HostOpener opener;
  const Result<report::HostRules> found = rules::inspect_host(opener);
  if (!found) {
    return complain(found.error());
  }
  print(options.output.is_text() ? render_text(*found) : in_format(options.output, render_json(*found)));
  return kFine;
}

// A mistyped command looks like a container's name.
Error with_command(Error error, const std::string& target) {
  const bool is_unknown = error.code == std::errc::no_such_process;
  const std::string meant = is_unknown ? nearest(target, {"diff"}) : "";
  error.message += meant.empty() ? "" : " (did you mean the command " + meant + "?)";
  return error;
}

int show_targets(const RulesOptions& options) {
  host::HostOpener opener;
  std::vector<report::TargetRules> shown;
  bool is_exact = true;
  for (const std::string& target : options.targets) {
    Result<rules::Inspection> inspection = open_target(opener, target);
    if (!inspection) {
      return complain(with_command(inspection.error(), target));
    }
    shown.push_back(inspection->rules());
    const report::TargetRules& last = shown.back();
    is_exact = is_exact && (last.effective.exact || last.source == report::Source::probe);
  }
  print(options.output.is_text() ? render_text(shown) : in_format(options.output, render_json(shown)));
  return is_exact ? kFine : kCannotTell;
}

class Questions {
 public:
  Questions(rules::Inspection inspection, const Output& output) : inspection_(std::move(inspection)), output_(output) {}

  void ask(const std::string& question) {
    const Result<device::Request> request = device::parse_request(question);
    const Answer answer = request ? inspection_.ask(*request) : Answer{Answer::Kind::unknown, request.error().message};
    const int status = answer.kind == Answer::Kind::allow  ? kFine
                       : answer.kind == Answer::Kind::deny ? kProblem
                                                           : kCannotTell;
    status_ = std::max(status_, status);
    if (!output_.is_text()) {
      asked_.push_back({question, answer});
    } else {
      print(report::render_text(answer) + "\n");
    }
  }

  // Each answer is flushed at once, because another program may be waiting for it.
  void ask_each_line() {
    for (std::string line; std::getline(std::cin, line);) {
      ask(std::string(trim(line)));
      std::fflush(stdout);
    }
  }

  int finish() {
    if (!output_.is_text()) {
      print(in_format(output_, report::render_json(inspection_.name(), asked_)));
    }
    return status_;
  }

 private:
  rules::Inspection inspection_;
  const Output& output_;
  std::vector<report::AskedQuestion> asked_;
  int status_ = kFine;
};

int answer_questions(const RulesOptions& options) {
  if (options.targets.size() != 1) {
    return complain({std::errc::invalid_argument, "--ask wants one target"});
  }
  for (const std::string& question : options.questions) {
    const Result<device::Request> request = question == "-" ? device::Request{} : device::parse_request(question);
    if (!request) {
      return complain(request.error());
    }
  }
  host::HostOpener opener;
  Result<rules::Inspection> inspection = open_target(opener, options.targets.front());
  if (!inspection) {
    return complain(inspection.error());
  }
  Questions questions(*std::move(inspection), options.output);
  for (const std::string& question : options.questions) {
    if (question == "-") {
      questions.ask_each_line();
    } else {
      questions.ask(question);
    }
  }
  return questions.finish();
}

int show_difference(const RulesOptions& options) {
  host::HostOpener opener;
  std::vector<container::Effective> sides;
  for (const std::string& target : {options.left, options.right}) {
    const Result<rules::Inspection> inspection = open_target(opener, target);
    if (!inspection) {
      return complain(inspection.error());
    }
    sides.push_back(container::effective(inspection->observed()));
  }
  const std::string doubt = !sides[0].exact ? sides[0].why : sides[1].why;
  const report::TargetDifference difference{options.left, options.right,
                                            device::compare(sides[0].table, sides[1].table), doubt};
  print(options.output.is_text() ? render_text(difference) : in_format(options.output, render_json(difference)));
  if (!doubt.empty()) {
    return kCannotTell;
  }
  return difference.difference.none() ? kFine : kProblem;
}

}  // namespace

void add_rules(CLI::App& app, int& status) {
  const auto options = std::make_shared<RulesOptions>();
  CLI::App* command =
      app.add_subcommand("rules", "which devices a process, a cgroup or a program may open, and by which rules");
  command->add_option(
      "TARGET", options->targets,
      "a container, pid:N, cgroup:PATH, program:ID or file:PATH (hex or JSON); none: every cgroup that restricts "
      "devices");
  command
      ->add_option("--ask", options->questions,
                   "answer c:195:0:rw with allow, deny GATE or unknown WHY; repeatable; - reads one question per line")
      ->allow_extra_args(false);
  add_output(*command, options->output);
  command->footer(
      "exit: 0 shown, or all allowed; 1 something is denied or differs; 2 usage, or it could not be determined\n"
      "try:  holdfast rules pid:1 --ask c:195:0:rw");

  CLI::App* diff = command->add_subcommand("diff", "where two targets differ, in both directions");
  diff->add_option("A", options->left, "a target, as above")->required();
  diff->add_option("B", options->right, "another")->required();
  add_output(*diff, options->output);

  command->callback([options, diff, &status] {
    if (diff->parsed() && !(options->targets.empty() && options->questions.empty())) {
      status = complain({std::errc::invalid_argument, "rules diff takes two targets and no questions"});
    } else if (diff->parsed()) {
      status = show_difference(*options);
    } else if (!options->questions.empty()) {
      status = answer_questions(*options);
    } else {
      status = options->targets.empty() ? show_host(*options) : show_targets(*options);
    }
  });
}

}  // namespace hf::programs
