#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "core/base/text.h"
#include "core/device/compare.h"
#include "core/report/rules_report.h"
#include "machine.h"
#include "output.h"
#include "services/rules/inspect.h"

namespace hf::programs {
namespace {

using container::Answer;

struct RulesWords {
  std::vector<std::string> targets;
  std::vector<std::string> questions;
  std::string left;
  std::string right;
  Output output;
};

// A container's name stands for its first process.
Result<rules::Inspection> open_target(rules::Node& node, const std::string& word) {
  return rules::Inspection::open(node, TRY(target_of(word)));
}

int show_node(const RulesWords& words) {
  rules::Node node;
  const Result<report::NodeRules> found = rules::inspect_node(node);
  if (!found) {
    return complain(found.error());
  }
  print(words.output.is_json() ? render_json(*found) : render_text(*found));
  return kFine;
}

int show_targets(const RulesWords& words) {
  rules::Node node;
  std::vector<report::TargetRules> shown;
  bool told = true;
  for (const std::string& target : words.targets) {
    Result<rules::Inspection> inspection = open_target(node, target);
    if (!inspection) {
      return complain(inspection.error());
    }
    shown.push_back(inspection->rules());
    const report::TargetRules& last = shown.back();
    told = told && (last.effective.exact || last.source == report::Source::probe);
  }
  print(words.output.is_json() ? render_json(shown) : render_text(shown));
  return told ? kFine : kCannotTell;
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
    if (output_.is_json()) {
      asked_.push_back({question, answer});
    } else {
      print(report::render_text(answer) + "\n");
    }
  }

  // One line in, one line out, at once: another program may be waiting for it.
  void ask_each_line() {
    for (std::string line; std::getline(std::cin, line);) {
      ask(std::string(trim(line)));
      std::fflush(stdout);
    }
  }

  int finish() {
    if (output_.is_json()) {
      print(report::render_json(inspection_.name(), asked_));
    }
    return status_;
  }

 private:
  rules::Inspection inspection_;
  const Output& output_;
  std::vector<report::AskedQuestion> asked_;
  int status_ = kFine;
};

int answer_questions(const RulesWords& words) {
  if (words.targets.size() != 1) {
    return complain({std::errc::invalid_argument, "--ask wants one target"});
  }
  for (const std::string& question : words.questions) {
    const Result<device::Request> request = question == "-" ? device::Request{} : device::parse_request(question);
    if (!request) {
      return complain(request.error());
    }
  }
  rules::Node node;
  Result<rules::Inspection> inspection = open_target(node, words.targets.front());
  if (!inspection) {
    return complain(inspection.error());
  }
  Questions questions(*std::move(inspection), words.output);
  for (const std::string& question : words.questions) {
    if (question == "-") {
      questions.ask_each_line();
    } else {
      questions.ask(question);
    }
  }
  return questions.finish();
}

int show_difference(const RulesWords& words) {
  rules::Node node;
  std::vector<container::Effective> sides;
  for (const std::string& target : {words.left, words.right}) {
    const Result<rules::Inspection> inspection = open_target(node, target);
    if (!inspection) {
      return complain(inspection.error());
    }
    sides.push_back(container::effective(inspection->observed()));
  }
  const std::string doubt = !sides[0].exact ? sides[0].why : sides[1].why;
  const report::TargetDifference difference{words.left, words.right, device::compare(sides[0].table, sides[1].table),
                                            doubt};
  print(words.output.is_json() ? render_json(difference) : render_text(difference));
  if (!doubt.empty()) {
    return kCannotTell;
  }
  return difference.difference.none() ? kFine : kProblem;
}

}  // namespace

void add_rules(CLI::App& app, int& status) {
  const auto words = std::make_shared<RulesWords>();
  CLI::App* command =
      app.add_subcommand("rules", "which devices a process, a cgroup or a program may open, and by whose rules");
  command->add_option(
      "TARGET", words->targets,
      "a container, pid:N, cgroup:PATH, program:ID or file:PATH (hex or JSON); none: every cgroup that restricts "
      "devices");
  command
      ->add_option("--ask", words->questions,
                   "answer c:195:0:rw with allow, deny GATE or unknown WHY; repeatable; - reads one question a line")
      ->allow_extra_args(false);
  add_output(*command, words->output);
  command->footer(
      "exit: 0 shown, or all allowed; 1 something is denied or differs; 2 usage, or it could not be told\n"
      "try:  holdfast rules pid:1 --ask c:195:0:rw");

  CLI::App* diff = command->add_subcommand("diff", "where two targets differ, in both directions");
  diff->add_option("A", words->left, "a target, as above")->required();
  diff->add_option("B", words->right, "another")->required();
  add_output(*diff, words->output);

  command->callback([words, diff, &status] {
    if (diff->parsed() && !(words->targets.empty() && words->questions.empty())) {
      status = complain({std::errc::invalid_argument, "rules diff takes two targets and no questions"});
    } else if (diff->parsed()) {
      status = show_difference(*words);
    } else if (!words->questions.empty()) {
      status = answer_questions(*words);
    } else {
      status = words->targets.empty() ? show_node(*words) : show_targets(*words);
    }
  });
}

}  // namespace hf::programs
