#include "adapters/kube/cpu_checkpoint.h"

#include <gtest/gtest.h>

#include "adapters/kube/cpu_messages.h"
#include "support/cpu_vectors.h"
#include "support/vectors.h"

namespace hf::kube {
namespace {

using Json = nlohmann::json;

class RecordedCheckpoints : public testing::Test {
 protected:
  void SetUp() override {
    if (test::cpu_vectors().is_null()) {
      GTEST_SKIP() << "no recorded CPU tables at " << test::vectors_directory();
    }
  }
};

cpu::State state_of(const Json& json) {
  cpu::State state;
  state.shared = test::cpus(json["default_cpuset"]);
  for (const auto& [pod, containers] : json["assignments"].items()) {
    for (const auto& [container, cpus] : containers.items()) {
      state.entries[{pod, container}] = test::cpus(cpus);
    }
  }
  for (const auto& [pod, cpus] : json["pod_assignments"].items()) {
    state.pods[pod] = test::cpus(cpus);
  }
  return state;
}

CpuReader reader_of(const Json& entry) {
  CpuReader reader{.policy = entry["policy_name"], .containers = {}};
  if (entry["gate_PodLevelResourceManagers"] == true) {
    reader.budgets = cpu::PodBudgets::honoured;
  }
  for (const Json& container : entry["initial_containers"]) {
    reader.containers[container["container_id"]] = {container["pod_uid"], container["container"]};
  }
  return reader;
}

TEST_F(RecordedCheckpoints, AreRestoredOrRefusedAsByKubelet) {
  ASSERT_EQ(test::cpu_vectors()["checkpoint_restore"].size(), 17U);
  for (const Json& entry : test::cpu_vectors()["checkpoint_restore"]) {
    const std::string text = entry["file_content"];
    if (text.empty()) {
      continue;  // there was no file
    }
    const auto checkpoint = parse_cpu_checkpoint(text, reader_of(entry));
    const std::string error = test::error_of(entry);
    if (!checkpoint) {
      const std::string file = error.substr(error.find("file \"") + 6, error.rfind('"') - error.find("file \"") - 6);
      EXPECT_EQ(restart_error(checkpoint.error().kubelet_says, file), error) << entry["case"];
      EXPECT_NE(checkpoint.error().what, "") << entry["case"];
      continue;
    }
    EXPECT_EQ(error, "") << entry["case"];
    EXPECT_EQ(checkpoint->state, state_of(entry["state"])) << entry["case"];
  }
}

TEST_F(RecordedCheckpoints, HaveTheSameChecksums) {
  ASSERT_EQ(test::cpu_vectors()["checkpoint_checksum"].size(), 12U);
  for (const Json& entry : test::cpu_vectors()["checkpoint_checksum"]) {
    const CpuReader reader{.policy = "",
                           .budgets = entry["format"] == "v3" ? cpu::PodBudgets::honoured : cpu::PodBudgets::ignored,
                           .containers = {}};
    const auto checkpoint = parse_cpu_checkpoint(entry["file_bytes"].get<std::string>(), reader);
    ASSERT_TRUE(checkpoint) << entry["case"] << checkpoint.error().what;
    EXPECT_EQ(to_string(checkpoint->format), entry["format"].get<std::string>()) << entry["case"];
    const auto fields = read_cpu_fields(entry["file_bytes"].get<std::string>());
    ASSERT_TRUE(fields) << entry["case"] << fields.error().what;
    const std::string text = hashed_text(checkpoint->format, *fields);
    EXPECT_EQ(text, entry["hashed_text"].get<std::string>()) << entry["case"];
    EXPECT_EQ(fnv1a(text), entry["checksum"].get<std::uint32_t>()) << entry["case"];
    if (entry["format"] == "v2") {
      EXPECT_EQ(render_cpu_checkpoint(checkpoint->policy, checkpoint->state), entry["file_bytes"].get<std::string>())
          << entry["case"];
    }
  }
}

TEST_F(RecordedCheckpoints, OfARunningKubeletAreReadAndWrittenAgain) {
  for (const Json& entry : test::cpu_vectors()["live_checkpoint_files"]) {
    if (entry["file"].get<std::string>().ends_with("cpu_manager_state")) {
      const std::string text = entry["bytes"];
      const auto checkpoint = parse_cpu_checkpoint(text, {.policy = "static", .containers = {}});
      ASSERT_TRUE(checkpoint) << checkpoint.error().what;
      EXPECT_EQ(render_cpu_checkpoint("static", checkpoint->state), text);
    }
  }
}

TEST(CpuCheckpoint, ThatIsNoJsonIsRefusedWithTheLineAndTheColumn) {
  EXPECT_EQ(parse_cpu_checkpoint("{\n \"policyName\": static}", {}).error().what, "line 2, column 16: this is no JSON");
  EXPECT_EQ(parse_cpu_checkpoint("[]", {}).error().what, "it is no JSON object");
}

// The format of kubelet 1.37: the fields of v2 for older kubelets, and the state itself in "data".
std::string newest(const std::string& data, std::uint32_t checksum) {
  Json json = Json::parse(render_cpu_checkpoint("static", {}));
  json["data"] = data;
  json["dataChecksum"] = checksum;
  return json.dump();
}

TEST(CpuCheckpoint, OfTheNewestKubeletIsParsedFromItsData) {
  const std::string data =
      R"({"policyName":"static","defaultCpuSet":"0,3","entries":{"u":{"c":"1"}},"podEntries":{"u":{"cpuSet":"1-2"}}})";
  const auto checkpoint = parse_cpu_checkpoint(newest(data, fnv1a("(string)" + data)), {});
  ASSERT_TRUE(checkpoint) << checkpoint.error().what;
  EXPECT_EQ(checkpoint->format, CpuFormat::v4);
  EXPECT_EQ(to_string(checkpoint->state.shared), "0,3");
  EXPECT_EQ(to_string(checkpoint->state.entries.at({"u", "c"})), "1");
  EXPECT_EQ(to_string(checkpoint->state.pods.at("u")), "1-2");
  EXPECT_NE(checkpoint->older_kubelets.find("say something else"), std::string::npos) << checkpoint->older_kubelets;
}

TEST(CpuCheckpoint, AcceptsASignedNumberAsGoDoes) {
  const auto checkpoint = parse_cpu_checkpoint(R"({"policyName":"static","defaultCpuSet":"+0-3","checksum":0})", {});
  ASSERT_TRUE(checkpoint) << checkpoint.error().what;
  EXPECT_EQ(to_string(checkpoint->state.shared), "0-3");
}

TEST(CpuCheckpoint, OfTheNewestKubeletDoesNotFallBackToTheOlderFields) {
  const auto checkpoint = parse_cpu_checkpoint(newest(R"({"policyName":"static"})", 1), {});
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(checkpoint.error().kubelet_says, "checkpoint is corrupted");
}

TEST(CpuCheckpoint, ByContainerIdKeepsContainersWithoutAName) {
  const auto checkpoint =
      parse_cpu_checkpoint(R"({"policyName":"static","defaultCpuSet":"0","entries":{"4f1c":"1-3"},"checksum":0})", {});
  ASSERT_TRUE(checkpoint) << checkpoint.error().what;
  EXPECT_EQ(checkpoint->format, CpuFormat::v1);
  EXPECT_FALSE(checkpoint->is_checked);
  EXPECT_EQ(to_string(checkpoint->by_id.at("4f1c")), "1-3");
}

TEST(CpuCheckpoint, IsRefusedWithTheErrorOfKubelet) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "unexpected end of JSON input"},
      {"{\"policyName\":", "unexpected end of JSON input"},
      {"?", "invalid character '?' looking for beginning of value"},
      {"1e999", "json: cannot unmarshal number into Go value of type state.CPUManagerCheckpointV1"},
      {"[]", "json: cannot unmarshal array into Go value of type state.CPUManagerCheckpointV1"},
      {R"({"policyName":7})",
       "json: cannot unmarshal number into Go struct field CPUManagerCheckpointV1.policyName of type string"},
      {"null", R"(configured policy "static" differs from state checkpoint policy "")"},
      {"{}", R"(configured policy "static" differs from state checkpoint policy "")"},
      {R"({"policyName":"other","checksum":0})",
       R"(configured policy "static" differs from state checkpoint policy "other")"},
      {"\xef\xbb\xbf{}", "invalid character 'ï' looking for beginning of value"},
      {std::string(1, '\0'), "invalid character '\\x00' looking for beginning of value"},
      {R"({"checksum":-1})",
       "json: cannot unmarshal number -1 into Go struct field CPUManagerCheckpointV1.checksum of type "
       "checksum.Checksum"},
      {R"({"policyName":"static","defaultCpuSet":"99999999999999999999","checksum":0})",
       R"(could not parse default cpu set "99999999999999999999": strconv.Atoi: parsing "99999999999999999999": value out of range)"},
      {R"({"policyName":"static","defaultCpuSet":"9999","checksum":0})",
       "current set of available CPUs \"…\" doesn't match with CPUs in state \"9999\""},
      {R"({"policyName":"static","defaultCpuSet":"3-1","checksum":0})",
       R"(could not parse default cpu set "3-1": invalid range "3-1" (3 > 1))"},
      {R"({"policyName":"static","defaultCpuSet":"1-","checksum":0})",
       R"(could not parse default cpu set "1-": strconv.Atoi: parsing "": invalid syntax)"},
  };
  for (const auto& [text, error] : table) {
    const auto checkpoint = parse_cpu_checkpoint(text, {});
    ASSERT_FALSE(checkpoint) << text;
    EXPECT_EQ(checkpoint.error().kubelet_says, error) << text;
  }
}

TEST(CpuCheckpoint, IsWrittenAsGoWritesIt) {
  cpu::State state;
  state.shared.add(0);
  state.entries[{"<uid>", "a&b"}].add(1);
  const std::string text = render_cpu_checkpoint("static", state);
  EXPECT_NE(text.find(R"({"\u003cuid\u003e":{"a\u0026b":"1"}})"), std::string::npos) << text;
  const auto again = parse_cpu_checkpoint(text, {});
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(again->state, state);
}

}  // namespace
}  // namespace hf::kube
