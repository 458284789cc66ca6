#include "render/fleet.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace hf::report {
namespace {

FleetMember member(const std::string& node) {
  return {.node = node, .name_space = "holdfast", .pod = "guard-" + node, .obstacle = {}};
}

DoctorReport sick() {
  DoctorReport report;
  report.findings = {{.code = "HF-101",
                      .severity = Severity::critical,
                      .subject = "train",
                      .container = "4f1c",
                      .what = "lost the right to open /dev/nvidia0",
                      .because = {},
                      .evidence = {"program:57 denies it"},
                      .cure = {"holdfast heal train", "systemctl daemon-reload"}},
                     {.code = "HF-301",
                      .severity = Severity::note,
                      .subject = "host",
                      .container = "",
                      .what = "worth knowing",
                      .because = {},
                      .evidence = {},
                      .cure = {}}};
  report.containers = 2;
  report.states = {{"lost", 1}, {"ok", 1}};
  report.guard = "holdfastd runs";
  return report;
}

std::string without_marks(std::string text) {
  std::erase_if(text, [](char byte) { return byte >= kRed && byte <= kPlain; });
  return text;
}

FleetReport three_nodes() {
  FleetReport report;
  report.nodes.push_back(no_answer(member("gpu-9"), "no answer within 20 s"));
  report.nodes.push_back(answer_of(member("gpu-1"),
                                   DoctorReport{.findings = {},
                                                .states = {{"ok", 3}},
                                                .containers = 3,
                                                .shields = {},
                                                .guard = "holdfastd runs",
                                                .notes = {}},
                                   Notes::hidden));
  report.nodes.push_back(answer_of(member("gpu-7"), sick(), Notes::hidden));
  sort_worst_first(report);
  return report;
}

TEST(FleetText, HasTheVerdictTheTableTheFindingsAndTheSilentNodes) {
  EXPECT_EQ(without_marks(render_text(three_nodes())),
            "1 of 3 nodes has critical problems; 1 did not answer\n"
            "\n"
            "NODE   VERDICT                                          GUARD\n"
            "gpu-7  1 critical problem (2 containers: 1 lost, 1 ok)  holdfastd runs\n"
            "gpu-1  no problem found (3 containers: 3 ok)            holdfastd runs\n"
            "\n"
            "gpu-7 (pod holdfast/guard-gpu-7)\n"
            "HF-101 critical train: lost the right to open /dev/nvidia0\n"
            "    program:57 denies it\n"
            "either: kubectl exec -n holdfast guard-gpu-7 -c guard -- holdfast heal train\n"
            "    or: on gpu-7: systemctl daemon-reload\n"
            "\n"
            "NODE   POD                   NO ANSWER BECAUSE\n"
            "gpu-9  holdfast/guard-gpu-9  no answer within 20 s\n");
}

TEST(FleetText, FitsTheTerminal) {
  const std::string text = without_marks(render_text(three_nodes(), 50));
  EXPECT_NE(text.find("\ngpu-7  1 critical problem"), std::string::npos);
  for (std::size_t begin = text.find("NODE"), end = begin; end != std::string::npos && text[begin] != '\n';
       begin = end + 1) {
    end = text.find('\n', begin);
    EXPECT_LE(end - begin, 50U + 2U) << text.substr(begin, end - begin);  // "…" has three bytes
  }
}

TEST(FleetText, ShowsNotesOnRequest) {
  const auto count = [](Notes notes) { return answer_of(member("a"), sick(), notes).findings.size(); };
  EXPECT_EQ(count(Notes::hidden), 1U);
  EXPECT_EQ(count(Notes::shown), 2U);
}

TEST(FleetText, ShowsAContainerThatRunsWithoutTheDevicesItAsksFor) {
  DoctorReport report = sick();
  report.findings.resize(1);
  report.findings.front().code = "HF-125";
  report.findings.front().severity = Severity::note;
  EXPECT_EQ(answer_of(member("a"), report, Notes::hidden).findings.size(), 1U);
}

TEST(FleetText, KeepsLittleOfANodeThatSendsALot) {
  DoctorReport report = sick();
  report.findings.resize(1000, report.findings.front());
  report.findings.front().evidence.assign(1000, "x");
  const NodeAnswer answer = answer_of(member("a"), std::move(report), Notes::shown);
  EXPECT_EQ(answer.findings.size(), 20U);
  EXPECT_EQ(answer.findings.front().evidence.size(), 8U);
  EXPECT_EQ(answer.left_out, 980U);
  ContainerList list;
  list.lines.resize(2000);
  const NodeAnswer rows = answer_of(member("a"), list);
  EXPECT_EQ(rows.rows.size(), 500U);
  EXPECT_EQ(rows.left_out, 1500U);
  FleetReport of_one;
  of_one.question = Question::ps;
  of_one.nodes = {rows};
  EXPECT_NE(
      render_text(of_one).find("note: 1500 more on a: kubectl exec -n holdfast guard-a -c guard -- holdfast ps\n"),
      std::string::npos);
}

TEST(FleetText, CutsColouredCells) {
  BlameRecord record;
  record.devices = {std::string(100'000, 'x')};
  EXPECT_LT(answer_of(member("a"), {record}).rows.front()[3].size(), 210U);
}

TEST(FleetText, EscapesWhatANodeSends) {
  DoctorReport report = sick();
  report.guard = "runs\n\x1b[31mgpu-8  all fine";
  report.findings.front().what = "x\x1b]0;title\x07\ny";
  report.findings.front().cure = {"holdfast heal 'a\nb'"};
  FleetReport fleet;
  fleet.nodes = {answer_of(member("a"), report, Notes::hidden), no_answer(member("b"), "bad\r\x1b[2J")};
  const std::string text = render_text(fleet);
  EXPECT_EQ(text.find_first_of("\x1b\x07\r"), std::string::npos);
  EXPECT_EQ(text.find("\ngpu-8"), std::string::npos);
  EXPECT_EQ(text.find("'a\n"), std::string::npos);
}

TEST(FleetText, PutsTheRecordsOfAllNodesIntoOneTimeline) {
  const auto record_at = [](std::int64_t at) {
    BlameRecord record;
    record.at = at;
    record.container = "train/main";
    record.name_space = "ml";
    return record;
  };
  FleetReport report;
  report.question = Question::blame;
  report.nodes = {answer_of(member("a"), {record_at(1000), record_at(3000)}),
                  answer_of(member("b"), {record_at(2000)})};
  const std::string text = render_text(report);
  EXPECT_LT(text.find(":01.000Z"), text.find(":02.000Z"));
  EXPECT_LT(text.find(":02.000Z"), text.find(":03.000Z"));
  EXPECT_NE(text.find("ml/train/main"), std::string::npos);
}

TEST(FleetText, NamesNodesWithoutContainers) {
  FleetReport report;
  report.question = Question::cpu_status;
  CpuStatus off;
  off.problem = "cpus.manager is not on";
  report.nodes = {answer_of(member("a"), off), answer_of(member("b"), CpuStatus())};
  const std::string text = render_text(report);
  EXPECT_NE(text.find("CPUs are not managed: cpus.manager is not on"), std::string::npos);
  EXPECT_NE(text.find("b     no containers"), std::string::npos);
}

TEST(FleetDocument, HasTheReportsOfTheNodes) {
  FleetReport report = three_nodes();
  sort_by_name(report);
  FleetDocument document(FleetDocument::Format::json);
  std::string text = document.head(report);
  for (const NodeAnswer& answer : report.nodes) {
    text += document.node(answer, answer.has_answered() ? R"({"version":1,"findings":[]})" : "");
  }
  text += document.tail(report);
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["schema"], "fleet");
  EXPECT_EQ(json["command"], "doctor");
  ASSERT_EQ(json["nodes"].size(), 3U);
  EXPECT_EQ(json["nodes"][0]["node"], "gpu-1");
  EXPECT_EQ(json["nodes"][0]["report"]["version"], 1);
  EXPECT_EQ(json["nodes"][2]["answered"], false);
  EXPECT_EQ(json["nodes"][2]["error"], "no answer within 20 s");
  EXPECT_FALSE(json["nodes"][2].contains("report"));
  EXPECT_EQ(json["verdict"]["critical"], 1);
  EXPECT_EQ(json["verdict"]["headline"], "1 of 3 nodes has critical problems; 1 did not answer");
}

TEST(FleetDocument, IsTheSameTreeInYaml) {
  FleetReport report;
  report.nodes = {no_answer({.node = "a", .name_space = {}, .pod = {}, .obstacle = {}}, "no pod"),
                  answer_of(member("b"), CpuStatus())};
  FleetDocument document(FleetDocument::Format::yaml);
  EXPECT_EQ(
      document.head(report) + document.node(report.nodes[0], "") + document.node(report.nodes[1], R"({"x":[1]})"),
      "\"version\": 1\n\"schema\": \"fleet\"\n\"command\": \"doctor\"\n\"nodes\":\n"
      "  -\n    \"node\": \"a\"\n    \"answered\": false\n    \"error\": \"no pod\"\n"
      "  -\n    \"node\": \"b\"\n    \"answered\": true\n    \"namespace\": \"holdfast\"\n    \"pod\": \"guard-b\"\n"
      "    \"report\":\n      \"x\":\n        - 1\n");
  EXPECT_TRUE(document.tail(report).starts_with("\"verdict\":\n  \"level\": \"warning\"\n"));
}

}  // namespace
}  // namespace hf::report
