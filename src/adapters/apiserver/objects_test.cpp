#include "adapters/apiserver/objects.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace hf::apiserver {
namespace {

using Json = nlohmann::json;

notice::EventWrite write() {
  notice::EventWrite write;
  write.name = "trainer-0.17a";
  write.event.pod = {"3f0e1b6a-4d2c-4c1f-9a51-0d5b1c2e7f10", "trainer-0", "ml", "main", true};
  write.event.reason = notice::Reason::device_lost;
  write.event.devices = {"/dev/nvidia0"};
  write.count = 3;
  write.first_at = 1'794'719'648'123;
  write.last_at = 1'794'719'650'000;
  return write;
}

TEST(Event, IsAnEventOfThePod) {
  const Request request = create_event(write(), "gpu-7");
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/api/v1/namespaces/ml/events");
  const Json json = Json::parse(request.body);
  EXPECT_EQ(json["involvedObject"]["uid"], write().event.pod.uid);
  EXPECT_FALSE(json["involvedObject"].contains("fieldPath")) << "it may be an init container";
  EXPECT_TRUE(json["message"].get<std::string>().starts_with("container main ")) << json["message"];
  EXPECT_EQ(json["type"], "Warning");
  EXPECT_EQ(json["reason"], "DeviceLost");
  EXPECT_EQ(json["count"], 3);
  EXPECT_EQ(json["firstTimestamp"], "2026-11-15T05:14:08Z");
  EXPECT_EQ(json["source"]["host"], "gpu-7");
}

TEST(Event, IsChangedByItsCountAndItsLastTime) {
  const Request request = change_event(write());
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.path, "/api/v1/namespaces/ml/events/trainer-0.17a");
  EXPECT_EQ(request.content_type, kStrategicMerge);
  EXPECT_EQ(Json::parse(request.body)["lastTimestamp"], "2026-11-15T05:14:10Z");
}

TEST(Condition, HasATransitionOnlyWhereItChanged) {
  ConditionWrite change{{notice::Status::no, "DeviceLost", "1 container"}, 1'794'719'648'123, std::nullopt};
  Json json = Json::parse(patch_condition("gpu-7", change).body)["status"]["conditions"][0];
  EXPECT_EQ(json["type"], "DeviceAccess");
  EXPECT_EQ(json["status"], "False");
  EXPECT_EQ(json["lastHeartbeatTime"], "2026-11-15T05:14:08Z");
  EXPECT_FALSE(json.contains("lastTransitionTime"));
  change.changed_at = change.at;
  json = Json::parse(patch_condition("gpu-7", change).body)["status"]["conditions"][0];
  EXPECT_TRUE(json.contains("lastTransitionTime"));
}

TEST(Condition, IsFoundInItsNode) {
  const auto node = [](const std::string& conditions) { return R"({"status": {"conditions": [)" + conditions + "]}}"; };
  const std::string ready = R"({"type": "Ready", "status": "True"}, )";
  EXPECT_EQ(find_status(node(ready + R"({"type": "DeviceAccess", "status": "False"})")), notice::Status::no);
  EXPECT_EQ(find_status(node(ready + R"({"type": "DeviceAccess", "status": "Unknown"})")), notice::Status::unknown);
  EXPECT_EQ(find_status(node(ready + R"({"type": "DeviceAccess", "status": 1})")), std::nullopt);
  EXPECT_EQ(find_status("{}"), std::nullopt);
  EXPECT_EQ(find_status("no JSON"), std::nullopt);
}

TEST(Taints, OfOthersAreKept) {
  const Result<Taints> taints = parse_taints(
      R"({"metadata": {"resourceVersion": "12"}, "spec": {"taints": [{"key": "x", "effect": "NoExecute", "timeAdded": "t"},
          {"key": "holdfast.dev/device-access", "effect": "NoSchedule"}]}})");
  ASSERT_TRUE(taints) << taints.error().message;
  EXPECT_TRUE(taints->has_ours);
  Json patch = Json::parse(patch_taints("gpu-7", *taints, false).body);
  EXPECT_EQ(patch["metadata"]["resourceVersion"], "12");
  EXPECT_EQ(patch["spec"]["taints"], Json::parse(R"([{"key": "x", "effect": "NoExecute", "timeAdded": "t"}])"));
  patch = Json::parse(patch_taints("gpu-7", *taints, true).body);
  EXPECT_EQ(patch["spec"]["taints"].size(), 2U);
  EXPECT_FALSE(parse_taints(R"({"metadata": {"resourceVersion": "12"}})")->has_ours);
  for (const char* text : {"", "[]", "{}", R"({"metadata": {"resourceVersion": 12}})"}) {
    EXPECT_FALSE(parse_taints(text)) << text;
  }
}

TEST(MessageOf, IsOneLineOfTheServersText) {
  EXPECT_EQ(message_of({403, R"({"kind": "Status", "message": "events is forbidden"})"}), "events is forbidden");
  EXPECT_EQ(message_of({500, "upstream\nbroken"}), "upstream?broken");
  EXPECT_EQ(message_of({500, ""}), "");
  EXPECT_LE(message_of({500, std::string(5000, 'x')}).size(), 304U);
}

}  // namespace
}  // namespace hf::apiserver
