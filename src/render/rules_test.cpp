#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "render/rules.h"

namespace hf::report {
namespace {

using container::Gate;
using device::Table;

Table table(std::initializer_list<const char*> lines) {
  device::RuleSet rules;
  for (const char* line : lines) {
    rules.push_back(*device::parse_rule(line));
  }
  return Table::of_rules(rules);
}

Gate systemd_gate() {
  Gate gate;
  gate.where = "/sys/fs/cgroup/x";
  gate.owner = "systemd";
  gate.program = container::AttachedProgram{
      container::ProgramId{57}, "sd_devices", 0, 1794719648, container::Attachment::several, {}};
  gate.meaning = table({"c 1:3 rwm", "c 195:0-7 rw", "b 8:* r", "c 240-*:1 m"});
  return gate;
}

Gate unread_gate() {
  Gate gate = systemd_gate();
  gate.meaning = std::unexpected(bpf::Opaque{"the verdict depends on a map"});
  return gate;
}

TargetRules rules_of(const Gate& gate) {
  return {"pid:1", {gate}, container::effective({{gate}, {}, {}}), Source::read};
}

TEST(RenderJson, HasTheFieldsOfTheSchema) {
  const nlohmann::json json = nlohmann::json::parse(render_json(std::vector{rules_of(systemd_gate())}));
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["target"], "pid:1");
  EXPECT_EQ(json["gates"][0]["owner"], "systemd");
  EXPECT_EQ(json["gates"][0]["program"]["id"], 57);
  EXPECT_EQ(json["gates"][0]["program"]["loaded_at"], "2026-11-15T05:14:08Z");
  EXPECT_EQ(json["effective"]["exact"], true);
  const nlohmann::json expected = nlohmann::json::parse(R"([
      {"type":"c","major":1,"minor":3,"access":"rwm"}, {"type":"b","major":8,"minor":null,"access":"r"},
      {"type":"c","major":195,"minor":[0,7],"access":"rw"}, {"type":"c","major":[240,4294967295],"minor":1,"access":"m"}])");
  EXPECT_EQ(json["effective"]["rules"], expected);
}

TEST(RenderJson, ClaimsNothingAboutWhatCannotBeRead) {
  const nlohmann::json json = nlohmann::json::parse(render_json(std::vector{rules_of(unread_gate())}));
  EXPECT_EQ(json["gates"][0]["rules"], nullptr);
  EXPECT_EQ(json["gates"][0]["why"], "the verdict depends on a map");
  EXPECT_EQ(json["effective"]["exact"], false);
  EXPECT_EQ(json["effective"]["rules"], nlohmann::json::array());
}

TEST(RenderJson, SurvivesNamesThatAreNotText) {
  Gate gate = systemd_gate();
  gate.where = "/sys/fs/cgroup/\xff\xfe\"\n";
  gate.program->name = "\x80";
  const std::string text = render_json(std::vector{rules_of(gate)});
  EXPECT_FALSE(nlohmann::json::parse(text, nullptr, false).is_discarded()) << text;
}

TEST(RenderText, SaysTheVerdictFirst) {
  const std::string text = render_text(std::vector{rules_of(systemd_gate())});
  EXPECT_TRUE(text.starts_with("pid:1: 4 rules, 1 gate\n")) << text;
  EXPECT_NE(
      text.find("v2:/sys/fs/cgroup/x program:57 (systemd), named sd_devices, loaded 2026-11-15T05:14:08Z by uid 0"),
      std::string::npos)
      << text;
  EXPECT_NE(render_text(std::vector{rules_of(unread_gate())}).find("NOT EXACT"), std::string::npos);
}

TEST(RenderText, AnswersInOneLine) {
  EXPECT_EQ(render_text(container::Answer{}), "allow");
  EXPECT_EQ(render_text(container::judge({{systemd_gate()}, {}, {}}, *device::parse_request("c:195:8:r"))),
            "deny v2:/sys/fs/cgroup/x program:57 (systemd)");
  EXPECT_EQ(render_text(container::judge({{unread_gate()}, {}, {}}, *device::parse_request("c:195:8:r"))),
            "unknown v2:/sys/fs/cgroup/x program:57 (systemd): the verdict depends on a map");
}

TEST(Judge, OneGateThatRefusesIsEnoughWhateverIsUnknown) {
  const container::Observed observed{{unread_gate(), systemd_gate()}, {}, {}};
  EXPECT_EQ(container::judge(observed, *device::parse_request("c:195:8:r")).kind, container::Answer::Kind::deny);
  EXPECT_EQ(container::judge(observed, *device::parse_request("c:195:7:r")).kind, container::Answer::Kind::unknown);
}

}  // namespace
}  // namespace hf::report
