#include "adapters/cpu_file/scenario_file.h"

#include <gtest/gtest.h>

namespace hf::cpu_file {
namespace {

const std::string kMachine = R"("topology":{"cpus":[[0,0,0,0,0],[1,1,0,0,0],[2,0,0,0,0],[3,1,0,0,0]]})";

TEST(ScenarioFile, ListsTheContainersThatComeAndGo) {
  const Result<ScenarioFile> file =
      parse_scenario("{" + kMachine + R"(,"options":{"full-pcpus-only":true},"reserved":"0",
    "ops":[{"op":"allocate","pod":"p","container":"c","hint_numa":[0],
            "pod_containers":[{"name":"i","type":"init","cpus":2},{"name":"c","type":"app","cpus":2}]},
           {"op":"allocate","pod":"p","container":"i","hint_numa":null},
           {"op":"remove","pod":"p","container":"c"}]})");
  ASSERT_TRUE(file) << file.error().message;
  const cpu::Scenario& scenario = file->scenario;
  EXPECT_EQ(file->machine_source, "");
  EXPECT_TRUE(scenario.options.full_cores);
  EXPECT_EQ(to_string(scenario.reserved), "0");
  ASSERT_EQ(scenario.steps.size(), 3U);
  EXPECT_EQ(scenario.steps[0].preference.hint, std::vector{cpu::NumaId{0}});
  EXPECT_EQ(scenario.steps[0].pod.containers[0].role, cpu::ContainerRole::init);
  EXPECT_EQ(scenario.steps[1].preference.hint, std::nullopt);
  EXPECT_EQ(scenario.steps[1].pod.containers.size(), 2U);  // listed with the first
  EXPECT_EQ(scenario.steps[2].operation, cpu::Operation::remove);
}

TEST(ScenarioFile, NamesAMachineOrDefinesItsOwn) {
  EXPECT_EQ(parse_scenario(R"({"topology":"dgx-a100","ops":[]})")->machine_source, "dgx-a100");
  const Result<ScenarioFile> own =
      parse_scenario(R"({"topology":"small","topologies":{"small":{"cpus":[[0,0,0,0,0]]}},"ops":[]})");
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(own->machine_source, "");
  EXPECT_EQ(own->scenario.topology.cpus.size(), 1U);
}

TEST(ScenarioFile, MayAskForTheSameContainerAgainWithOtherCpus) {
  const Result<ScenarioFile> file = parse_scenario("{" + kMachine + R"(,"ops":[
    {"op":"allocate","pod":"p","container":"c","cpus":1},{"op":"remove","pod":"p","container":"c"},
    {"op":"allocate","pod":"p","container":"c","cpus":3}]})");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(simulate(file->scenario)->steps[2].cpus.count(), 3U);
}

TEST(ScenarioFile, KnowsThePolicyNone) {
  const Result<ScenarioFile> file = parse_scenario("{" + kMachine + R"(,"policy":"none","ops":[
    {"op":"allocate","pod":"p","container":"c","cpus":2}]})");
  ASSERT_TRUE(file) << file.error().message;
  const Result<cpu::Simulation> simulation = simulate(file->scenario);
  ASSERT_TRUE(simulation);
  EXPECT_TRUE(simulation->steps[0].cpus.empty());
}

TEST(ScenarioFile, ReportsUnknownFields) {
  const Result<ScenarioFile> file = parse_scenario("{" + kMachine + R"(,"reservd":"0","comment":"x","ops":[
    {"op":"allocate","pod":"p","container":"c","cpus":1,"hint":[0]}]})");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->notes.size(), 2U);
  EXPECT_NE(file->notes[0].find("'reservd'"), std::string::npos) << file->notes[0];
  EXPECT_NE(file->notes[1].find("op 1: the unknown field 'hint' is ignored"), std::string::npos) << file->notes[1];
}

TEST(ScenarioFile, IsRefusedWithTheNameOfTheFaultyPart) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "scenario: line 1, column 1: this is no JSON"},
      {"{\n  \"ops\": [1,\n}", "scenario: line 3, column 1: this is no JSON"},
      {"[]", "no JSON object"},
      {"{}", "topology"},
      {R"({"topology":7,"ops":[]})", "topology"},
      {"{" + kMachine + "}", "ops"},
      {"{" + kMachine + R"(,"ops":[7]})", "op 1"},
      {"{" + kMachine + R"(,"ops":[{"op":"give","pod":"p","container":"c"}]})", "'give'"},
      {"{" + kMachine + R"(,"ops":[{"op":"allocate","pod":"p","container":"c"}]})", "'c' is not among"},
      {"{" + kMachine + R"(,"ops":[{"op":"allocate","pod":"p"}]})", "container"},
      {"{" + kMachine + R"(,"ops":[{"op":"allocate","pod":"p","container":"c","cpus":-1}]})", "cpus"},
      {"{" + kMachine + R"(,"ops":[{"op":"allocate","pod":"p","container":"c","cpus":1,"hint_numa":"0"}]})",
       "hint_numa"},
      {"{" + kMachine + R"(,"ops":[{"op":"allocate","pod":"p","container":"c",
        "pod_containers":[{"name":"c","type":"side","cpus":1}]}]})",
       "'side'"},
      {"{" + kMachine + R"(,"options":{"fast":true},"ops":[]})", "unknown CPU Manager Policy option: \"fast\""},
      {"{" + kMachine + R"(,"options":{"full-pcpus-only":7},"ops":[]})", "full-pcpus-only"},
      {"{" + kMachine + R"(,"reserved":"3-1","ops":[]})", "3-1"},
      {std::string(400'000, '['), "nested too deep"},
      {"{" + kMachine + R"(,"pod_budgets":"true","ops":[]})", "pod_budgets"},
      {"{" + kMachine + R"(,"ops":[{"op":"allocate","pod":"p","container":"c","cpus":1,"pod_containers":[]}]})",
       "twice"},
      {"{" + kMachine + R"(,"reserved":0,"ops":[]})", "CPU 0 is \"0\""},
      {"{" + kMachine + R"(,"ops":[{"op":"allocate_pod","pod":"p","pod_cpus":2}]})", "pod_budgets"},
      {"{" + kMachine + R"(,"ops":[{"op":"allocate","pod":"p","container":"c",
        "pod_containers":[{"name":"c","cpus":1},{"name":"c","cpus":1}]}]})",
       "twice"},
      {"{" + kMachine + R"(,"policy":"dynamic","ops":[]})", "unknown policy: \"dynamic\""},
      {"{" + kMachine + R"(,"policy":"none","options":{"full-pcpus-only":true},"ops":[]})", "none takes no option"},
  };
  for (const auto& [text, message] : table) {
    const Result<ScenarioFile> file = parse_scenario(text);
    ASSERT_FALSE(file) << text;
    EXPECT_NE(file.error().message.find(message), std::string::npos) << file.error().message;
  }
}

}  // namespace
}  // namespace hf::cpu_file
