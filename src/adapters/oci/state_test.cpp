#include "adapters/oci/state.h"

#include <gtest/gtest.h>

namespace hf::oci {
namespace {

TEST(RuncState, IsReadInRuncsFormat) {
  const Result<RuntimeState> state = parse_runc_state(R"({
    "id": "web", "init_process_pid": 29076, "init_process_start": 1154764, "created": "2026-11-15T07:28:27.927100057Z",
    "config": {"labels": ["a=b", "bundle=/run/bundles/web"], "cgroups": {"path": "/web", "Systemd": true}},
    "rootless": false, "cgroup_paths": {"": "/sys/fs/cgroup/web"}})");
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->runtime, "runc");
  EXPECT_EQ(state->id, "web");
  EXPECT_EQ(state->pid, 29076);
  EXPECT_EQ(state->started_at, 1154764U);
  EXPECT_EQ(state->bundle, "/run/bundles/web");
  EXPECT_EQ(state->systemd_cgroup, true);
}

TEST(RuncState, OfOlderVersionsLacksTheCgroupDriver) {
  const Result<RuntimeState> state =
      parse_runc_state(R"({"id":"web","init_process_pid":7,"config":{"cgroups":{"path":"/web","scope_prefix":""}}})");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->systemd_cgroup, std::nullopt);
  EXPECT_EQ(state->started_at, std::nullopt);
  EXPECT_EQ(parse_runc_state(R"({"config":{"cgroups":{"systemd":false}}})")->systemd_cgroup, false);
}

TEST(CrunStatus, IsReadInCrunsFormat) {
  const Result<RuntimeState> state = parse_crun_status(R"({
    "pid": 29185, "process-start-time": 1154851, "cgroup-path": "/system.slice/crun-web.scope",
    "scope": "crun-web.scope", "rootfs": "rootfs", "systemd-cgroup": true, "bundle": "/run/bundles/web",
    "created": "2026-11-15T07:28:28.785338Z", "owner": "root", "detached": true, "external_descriptors": "[\"/dev/null\"]"})");
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->runtime, "crun");
  EXPECT_EQ(state->pid, 29185);
  EXPECT_EQ(state->started_at, 1154851U);
  EXPECT_EQ(state->bundle, "/run/bundles/web");
  EXPECT_EQ(state->systemd_cgroup, true);
}

TEST(RuntimeStates, HaveNoPidWhereTheNumberIsInvalid) {
  for (const char* number : {"0", "-1", "2147483648", "18446744073709551615", "9223372036854775808", "1e3", "1.0",
                             "\"7\"", "null", "true", "[7]", "{}", "-9223372036854775808", "99999999999999999999"}) {
    const Result<RuntimeState> runc = parse_runc_state(std::string(R"({"init_process_pid":)") + number + "}");
    ASSERT_TRUE(runc) << number;
    EXPECT_EQ(runc->pid, 0) << number;
    const Result<RuntimeState> crun = parse_crun_status(std::string(R"({"pid":)") + number + "}");
    ASSERT_TRUE(crun) << number;
    EXPECT_EQ(crun->pid, 0) << number;
  }
  EXPECT_EQ(parse_crun_status(R"({"pid":2147483647})")->pid, 2147483647);
}

TEST(RuntimeStates, HaveNoStartTimeWhereTheNumberIsInvalid) {
  for (const char* number : {"-1", "1.5", "\"7\"", "null", "[]", "99999999999999999999999"}) {
    EXPECT_EQ(parse_runc_state(std::string(R"({"init_process_start":)") + number + "}")->started_at, std::nullopt)
        << number;
    EXPECT_EQ(parse_crun_status(std::string(R"({"process-start-time":)") + number + "}")->started_at, std::nullopt)
        << number;
  }
}

TEST(RuntimeStates, IgnoreFieldsOfAnotherType) {
  for (const char* json :
       {"{}", R"({"id":7,"config":[]})", R"({"config":null})", R"({"config":{"labels":{},"cgroups":[]}})",
        R"({"config":{"labels":[1,null,"bundle"],"cgroups":{"Systemd":"yes"}}})",
        R"({"bundle":["/x"],"systemd-cgroup":1})"}) {
    for (const auto& parse : {parse_runc_state, parse_crun_status}) {
      const Result<RuntimeState> state = parse(json);
      ASSERT_TRUE(state) << json;
      EXPECT_EQ(state->bundle, "") << json;
      EXPECT_EQ(state->systemd_cgroup, std::nullopt) << json;
    }
  }
}

TEST(RuntimeStates, AreRefusedWhereTheyAreNoJsonObject) {
  const std::string deep(200'000, '[');
  for (const std::string& json : {std::string(), std::string("null"), std::string("[]"), std::string("{"),
                                  std::string("{}}"), std::string("{\"id\":\"\xff\"}"), deep}) {
    EXPECT_FALSE(parse_runc_state(json)) << json.substr(0, 20);
    EXPECT_FALSE(parse_crun_status(json)) << json.substr(0, 20);
  }
}

}  // namespace
}  // namespace hf::oci
