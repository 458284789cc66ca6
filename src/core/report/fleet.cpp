#include "core/report/fleet.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include "core/base/shell.h"
#include "core/base/text.h"

namespace hf::report {
namespace {

// "1 of 500 nodes" + one, "2 of 500 nodes" + several.
struct Phrase {
  std::string_view one;
  std::string_view several;
};

struct Phrases {
  Phrase critical;
  Phrase warning;
};

Phrases phrases_of(Question question) {
  switch (question) {
    case Question::doctor:
      return {{"has critical problems", "have critical problems"}, {"has warnings", "have warnings"}};
    case Question::ps:
      return {{"has containers that lack something", "have containers that lack something"},
              {"has containers at risk", "have containers at risk"}};
    case Question::blame:
      return {{"has losses that were not restored", "have losses that were not restored"},
              {"had losses that were restored", "had losses that were restored"}};
    case Question::cpu_status:
      return {
          {"", ""},
          {"has containers without the CPUs they should have", "have containers without the CPUs they should have"}};
  }
  return {};
}

std::string counted(std::size_t count, const Phrase& phrase) {
  return std::to_string(count) + " " + std::string(count == 1 ? phrase.one : phrase.several);
}

std::string headline_of(const FleetVerdict& verdict, Question question) {
  constexpr Phrase kFine = {"is fine", "are fine"};
  const Phrases phrases = phrases_of(question);
  const std::size_t answered = verdict.nodes - verdict.unanswered;
  const std::size_t fine = answered - verdict.critical - verdict.warning - verdict.undecided;
  const std::string of_all = " of " + std::to_string(verdict.nodes) + " nodes ";
  if (answered == 0) {
    return verdict.nodes == 1 ? "the node did not answer"
                              : "none of " + std::to_string(verdict.nodes) + " nodes answered";
  }
  std::vector<std::string> parts;
  const auto add = [&](std::size_t count, const Phrase& phrase) {
    if (count > 0) {
      const std::string verb(count == 1 ? phrase.one : phrase.several);
      parts.push_back(parts.empty() ? std::to_string(count) + of_all + verb : counted(count, phrase));
    }
  };
  add(verdict.critical, phrases.critical);
  add(verdict.warning, phrases.warning);
  add(verdict.undecided, {"cannot be judged", "cannot be judged"});
  if (parts.empty()) {
    parts.push_back(fine < verdict.nodes
                        ? std::to_string(fine) + of_all + std::string(fine == 1 ? kFine.one : kFine.several)
                    : fine == 1 ? "the node is fine"
                                : "all " + std::to_string(fine) + " nodes are fine");
  }
  return join(parts, ", ") +
         (verdict.unanswered == 0 ? "" : "; " + std::to_string(verdict.unanswered) + " did not answer");
}

int rank_of(const NodeAnswer& answer) {
  return !answer.has_answered()            ? 4
         : answer.level == Level::critical ? 0
         : answer.level == Level::warning  ? 1
         : answer.is_undecided             ? 2
                                           : 3;
}

bool is_command_from_afar(const std::vector<std::string>& arguments) {
  // What works in the pod's container. The others prepare the host or an engine, or are sentences.
  constexpr std::array<std::string_view, 7> kVerbs = {"heal",    "grant",   "revoke", "doctor",
                                                      "explain", "devices", "rules"};
  return arguments.size() >= 2 && arguments[0] == "holdfast" &&
         std::ranges::find(kVerbs, std::string_view(arguments[1])) != kVerbs.end();
}

}  // namespace

std::string to_string(Question question) {
  switch (question) {
    case Question::doctor: return "doctor";
    case Question::ps: return "ps";
    case Question::blame: return "blame";
    case Question::cpu_status: return "cpu status";
  }
  return "";
}

FleetVerdict verdict_of(const FleetReport& report) {
  FleetVerdict verdict;
  verdict.nodes = report.nodes.size();
  for (const NodeAnswer& answer : report.nodes) {
    verdict.unanswered += answer.has_answered() ? 0 : 1;
    verdict.critical += answer.has_answered() && answer.level == Level::critical ? 1 : 0;
    verdict.warning += answer.has_answered() && answer.level == Level::warning ? 1 : 0;
    verdict.undecided += answer.has_answered() && answer.level == Level::good && answer.is_undecided ? 1 : 0;
  }
  const bool is_unclear = verdict.undecided + verdict.unanswered > 0;
  verdict.level = verdict.critical > 0                ? Level::critical
                  : verdict.warning > 0 || is_unclear ? Level::warning
                                                      : Level::good;
  verdict.headline = headline_of(verdict, report.question);
  return verdict;
}

void sort_worst_first(FleetReport& report) {
  std::ranges::sort(report.nodes, {}, [](const NodeAnswer& answer) {
    return std::tuple<int, const std::string&, const std::string&>(rank_of(answer), answer.member.node,
                                                                   answer.member.pod);
  });
}

void sort_by_name(FleetReport& report) {
  std::ranges::sort(report.nodes, {},
                    [](const NodeAnswer& answer) { return std::tie(answer.member.node, answer.member.pod); });
}

Judgement judge(const std::vector<Finding>& findings) {
  Judgement judgement;
  for (const Finding& finding : findings) {
    const bool is_sure = finding.severity != Severity::note && !is_undecided(finding);
    const Level level = finding.severity == Severity::critical ? Level::critical : Level::warning;
    judgement.level = is_sure ? std::max(judgement.level, level) : judgement.level;
    judgement.is_undecided |= is_undecided(finding) && finding.severity != Severity::note;
  }
  return judgement;
}

Judgement judge(const std::vector<ContainerLine>& lines) {
  Judgement judgement;
  for (const ContainerLine& line : lines) {
    const Level level = lacks_something(line.state)               ? Level::critical
                        : line.state == container::State::at_risk ? Level::warning
                                                                  : Level::good;
    judgement.level = std::max(judgement.level, level);
    judgement.is_undecided |= line.state == container::State::unknown;
  }
  return judgement;
}

Judgement judge(const std::vector<BlameRecord>& records) {
  Judgement judgement;
  for (const BlameRecord& record : records) {
    if (record.is_loss()) {
      judgement.level = std::max(judgement.level, record.loss_ns ? Level::warning : Level::critical);
    }
  }
  return judgement;
}

Judgement judge(const std::vector<CpuContainer>& containers) {
  const bool is_fine = std::ranges::all_of(containers, [](const CpuContainer& one) { return one.problem.empty(); });
  return {.level = is_fine ? Level::good : Level::warning};
}

std::string cure_from_afar(const FleetReport& report, const FleetMember& member, const std::string& cure) {
  const std::optional<std::vector<std::string>> arguments = arguments_in(cure);
  if (!arguments || !is_command_from_afar(*arguments)) {
    return "on " + member.node + ": " + cure;
  }
  std::vector<std::string> all = report.kubectl;
  all.insert(all.end(), {"exec", "-n", member.name_space, member.pod, "-c", report.container, "--"});
  all.insert(all.end(), arguments->begin(), arguments->end());
  return quoted_for_shell(all);
}

}  // namespace hf::report
