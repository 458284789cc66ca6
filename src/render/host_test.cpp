#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "render/finding.h"
#include "render/host.h"
#include "render/text_table.h"
#include "render/time.h"
#include "render/yaml.h"

namespace hf::report {
namespace {

TEST(TextTable, CutsTheWidestColumnsToFitATerminal) {
  TextTable table({"CONTAINER", "STATE"}, 24);
  table.add({"a-container-with-a-very-long-name", marked(kRed, "lost")});
  table.add({"ünï", "ok"});
  EXPECT_EQ(table.render(), std::string("CONTAINER          STATE\na-container-with…  ") + kRed + "lost" + kPlain +
                                "\nünï                ok\n");
  TextTable tiny({std::string(15, 'A'), std::string(15, 'B')}, 3);  // no column is cut to nothing
  EXPECT_EQ(tiny.render(), "AAA…  BBB…\n");
  TextTable many(std::vector<std::string>(7, std::string(30, 'C')), 61);  // 7 each, and 6 gaps of 2
  EXPECT_EQ(many.render().find('\n'), 7 * (6 + std::string_view("…").size()) + 12);
  TextTable named({"/dev/nvidia-uvm-tools", "a container with a long name"}, 40);  // the first column is cut last
  EXPECT_EQ(named.render(), "/dev/nvidia-uvm-tools  a container with…\n");
}

TEST(TextTable, LeavesMarksOutOfTheColumnWidth) {
  TextTable table({"A", "B"});
  table.add({marked(kRed, "ab"), "x"});
  table.add({"…", "y"});
  EXPECT_EQ(table.render(), "A   B\n" + marked(kRed, "ab") + "  x\n…   y\n");
}

TEST(TextTable, CutsByTheWidthThatIsSeen) {
  EXPECT_EQ(cut_to_width(marked(kRed, std::string(300, 'x')), 5), marked(kRed, "xxxx…"));
  EXPECT_EQ(cut_to_width(marked(kRed, "lost"), 4), marked(kRed, "lost"));
}

TEST(Yaml, IsTheTreeOfTheJson) {
  EXPECT_EQ(json_to_yaml(R"({"a": 1, "b": [{"c": "x: y", "d": []}, "e"], "f": {}})"),
            "\"a\": 1\n\"b\":\n  -\n    \"c\": \"x: y\"\n    \"d\": []\n  - \"e\"\n\"f\": {}\n");
}

TEST(Age, IsShort) {
  EXPECT_EQ(render_age(-5), "0s");
  EXPECT_EQ(render_age(59), "59s");
  EXPECT_EQ(render_age(120), "2m");
  EXPECT_EQ(render_age(7200), "2h");
  EXPECT_EQ(render_age(86400 * 3), "3d");
}

TEST(Pages, AreThoseOfTheDocument) {
  EXPECT_TRUE(page_of("HF-101").starts_with("HF-101 A container lost a right it had\n"));
  EXPECT_EQ(page_of("HF-101").find("HF-102 "), std::string::npos);
  EXPECT_EQ(page_of("HF-1"), "");
  EXPECT_EQ(page_of(""), "");
  for (const std::string& code : codes_with_pages()) {
    EXPECT_FALSE(page_of(code).empty()) << code;
  }
}

ContainerLine line() {
  ContainerLine made;
  made.container.id.value = std::string(64, 'a');
  made.container.name = "web";
  made.container.engine = "docker";
  made.container.started_at = 1'000;
  made.state = container::State::lost;
  made.codes = {"HF-101"};
  container::OwedNode node;
  node.path = "/dev/nvidia0";
  node.device_class = "nvidia";
  node.device = device::Device{device::Kind::character, 195, 0};
  node.access = device::Access::read | device::Access::write;
  made.entitlement.nodes.push_back(node);
  return made;
}

TEST(ContainerList, SaysTheSameAsTextAndAsJson) {
  const ContainerList list{{line()}, 1'060, {"a note"}};
  const std::string text = render_text(list, Width::wide);
  for (const char* part : {"web", "docker", "nvidia:0", "lost", "60s", "aaaaaaaaaaaa", "HF-101", "note: a note"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  const nlohmann::json json = nlohmann::json::parse(render_json(list));
  EXPECT_EQ(json["containers"][0]["state"], "lost");
  EXPECT_EQ(json["containers"][0]["owed"][0]["device"]["major"], 195);
  EXPECT_EQ(json["containers"][0]["started_at"], "1970-01-01T00:16:40Z");
}

TEST(DoctorReport, HasOneLineForItsWorstProblem) {
  DoctorReport report;
  EXPECT_EQ(render_worst(report), "");
  report.findings = {{"HF-124", Severity::note, "web", "", "may open more than it is owed", {}, {}, {}}};
  EXPECT_EQ(render_worst(report), "");
  report.findings.insert(
      report.findings.begin(),
      {"HF-101", Severity::critical, "train", "", "lost the right to open\n/dev/nvidia0", {}, {}, {}});
  EXPECT_EQ(render_worst(report), "HF-101 train: lost the right to open?/dev/nvidia0\n");
  report.findings.push_back({"HF-301", Severity::warning, "host", "", "no driver", {}, {}, {}});
  EXPECT_EQ(render_worst(report), "HF-101 train: lost the right to open?/dev/nvidia0 (and 1 more)\n");
}

TEST(DoctorReport, CountsWhatIsWrong) {
  DoctorReport report;
  report.containers = 3;
  EXPECT_EQ(summary_line(report), "no problem found (3 containers)");
  report.states = {{"lost", 1}, {"ok", 2}};
  report.findings = {{"HF-101", Severity::critical, "web", "id", "lost it", {}, {"evidence"}, {"cure it"}},
                     {"HF-307", Severity::warning, "host", "", "warned", {}, {}, {}},
                     {"HF-127", Severity::note, "web", "id", "noted", {}, {}, {}}};
  EXPECT_EQ(summary_line(report), "1 critical problem, 1 warning (3 containers: 1 lost, 2 ok)");
  const std::string text = render_text(report);
  EXPECT_NE(text.find("  cure: cure it\n"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(render_json(report))["findings"][0]["cure"][0], "cure it");
}

}  // namespace
}  // namespace hf::report
