#include "adapters/oci/spec.h"

#include <gtest/gtest.h>

namespace hf::oci {
namespace {

TEST(Spec, IsReadFromAConfigOfABundle) {
  const Result<Spec> spec = parse_spec(R"({
    "ociVersion": "1.0.2-dev",
    "process": {"env": ["PATH=/bin", "NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_VISIBLE_DEVICES=1=2", "FOO", "=x"],
                "capabilities": {"bounding": ["CAP_CHOWN", "CAP_SYS_ADMIN"]}},
    "hooks": {"prestart": [{"path": "/usr/bin/nvidia-container-runtime-hook", "args": ["hook", "prestart"]}],
              "poststop": [{"path": "/bin/true", "env": ["A=b"], "timeout": 30}]},
    "annotations": {"io.kubernetes.cri.container-name": "main", "io.kubernetes.cri.container-type": "container"},
    "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
    "linux": {"cgroupsPath": "/kubepods/besteffort/pod12/34",
              "devices": [{"path": "/dev/nvidia0", "type": "c", "major": 195, "minor": 0, "fileMode": 438, "uid": 0},
                          {"path": "/dev/sda", "type": "b", "major": 8, "minor": 0},
                          {"path": "/run/fifo", "type": "p"}],
              "resources": {"devices": [{"allow": false, "access": "rwm"},
                                        {"allow": true, "type": "c", "major": 195, "minor": 0, "access": "rw"}]}}})");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(annotation_of(*spec, "io.kubernetes.cri.container-name"), "main");
  EXPECT_EQ(annotation_of(*spec, "another"), "");
  EXPECT_EQ(environment_of(*spec, "NVIDIA_VISIBLE_DEVICES"), "1=2");
  EXPECT_EQ(environment_of(*spec, "FOO"), "");
  ASSERT_EQ(spec->nodes.size(), 2U);
  EXPECT_EQ(spec->nodes[0].path, "/dev/nvidia0");
  EXPECT_EQ(spec->nodes[0].device, (device::Device{device::Kind::character, 195, 0}));
  EXPECT_EQ(spec->nodes[1].device, (device::Device{device::Kind::block, 8, 0}));
  ASSERT_EQ(spec->rules.size(), 2U);
  EXPECT_EQ(spec->rules[1].rule, *device::parse_rule("c 195:0 rw"));
  ASSERT_EQ(spec->hooks.size(), 2U);
  EXPECT_EQ(spec->hooks[0].stage, "prestart");
  EXPECT_EQ(spec->hooks[0].arguments, (std::vector<std::string>{"hook", "prestart"}));
  EXPECT_EQ(spec->hooks[0].timeout, std::nullopt);
  EXPECT_EQ(spec->hooks[1].environment, std::vector<std::string>{"A=b"});
  EXPECT_EQ(spec->hooks[1].timeout, 30);
  EXPECT_EQ(spec->mounts.at(0).destination, "/proc");
  EXPECT_EQ(spec->cgroups_path, "/kubepods/besteffort/pod12/34");
  EXPECT_TRUE(spec->is_privileged);
}

TEST(Spec, MayBeEmpty) {
  for (const char* json :
       {"{}", R"({"linux":null,"process":null,"hooks":null,"mounts":null,"annotations":null})",
        R"({"linux":{"devices":null,"resources":null}})", R"({"linux":{"resources":{"devices":null}}})",
        R"({"linux":{"devices":[],"resources":{"devices":[]}}})"}) {
    const Result<Spec> spec = parse_spec(json);
    ASSERT_TRUE(spec) << json;
    EXPECT_TRUE(spec->nodes.empty()) << json;
    EXPECT_TRUE(spec->rules.empty()) << json;
    EXPECT_FALSE(spec->is_privileged) << json;
  }
}

TEST(Spec, IgnoresMalformedFieldsOtherThanDevices) {
  for (const char* json :
       {R"({"process":1,"hooks":[],"mounts":{},"annotations":[],"linux":[]})",
        R"({"process":{"env":{"A":"b"},"capabilities":["CAP_SYS_ADMIN"]}})",
        R"({"process":{"env":[1,null,{},"A=b"],"capabilities":{"bounding":"CAP_SYS_ADMIN"}}})",
        R"({"hooks":{"prestart":{},"poststart":[1,null,{"path":7,"args":"x"}]}})",
        R"({"mounts":[1,null,{"destination":[]}],"annotations":{"a":1,"b":null}})",
        R"({"linux":{"cgroupsPath":7,"seccomp":-1e99,"resources":7}})", R"({"new in OCI 9":{"devices":"x"}})"}) {
    const Result<Spec> spec = parse_spec(json);
    ASSERT_TRUE(spec) << json;
    EXPECT_FALSE(spec->is_privileged) << json;
    EXPECT_TRUE(spec->rules.empty()) << json;
  }
}

TEST(Spec, IsRefusedWhereDevicesAreMalformed) {
  for (const char* json :
       {R"({"linux":{"devices":{}}})",
        R"({"linux":{"devices":"/dev/null"}})",
        R"({"linux":{"devices":[1]}})",
        R"({"linux":{"devices":[null]}})",
        R"({"linux":{"devices":[{"path":"/dev/x","type":"x"}]}})",
        R"({"linux":{"devices":[{"path":"/dev/x"}]}})",
        R"({"linux":{"devices":[{"type":"c","major":1,"minor":3}]}})",
        R"({"linux":{"devices":[{"path":"dev/x","type":"c"}]}})",
        R"({"linux":{"devices":[{"path":7,"type":"c"}]}})",
        R"({"linux":{"devices":[{"path":"/dev/x","type":"c","major":-1}]}})",
        R"({"linux":{"devices":[{"path":"/dev/x","type":"c","major":4096}]}})",
        R"({"linux":{"devices":[{"path":"/dev/x","type":"c","minor":1048576}]}})",
        R"({"linux":{"devices":[{"path":"/dev/x","type":"c","major":"195"}]}})",
        R"({"linux":{"devices":[{"path":"/dev/x","type":"c","major":1.5}]}})",
        R"({"linux":{"devices":[{"path":"/dev/x","type":"c","major":18446744073709551615}]}})",
        R"({"linux":{"devices":[{"path":"/dev/x","type":"c","major":9223372036854775808}]}})",
        R"({"linux":{"devices":[{"path":"/dev/x","type":"c","major":-9223372036854775808}]}})",
        R"({"linux":{"devices":[{"path":"/dev/x","type":"c","major":1e400}]}})",
        R"({"linux":{"resources":{"devices":{}}}})",
        R"({"linux":{"resources":{"devices":"x"}}})",
        R"({"linux":{"resources":{"devices":[{"allow":"yes"}]}}})",
        R"({"linux":{"resources":{"devices":[{"allow":true,"type":"c","major":18446744073709551615}]}}})"}) {
    const Result<Spec> spec = parse_spec(json);
    EXPECT_FALSE(spec) << json;
    EXPECT_TRUE(spec || !spec.error().message.empty()) << json;
  }
}

TEST(Spec, IsRefusedWhereItIsNoJsonObject) {
  for (const char* json :
       {"", " ", "null", "[]", "7", "\"{}\"", "{", "{}x", "{\"a\":}", "{'a':1}", "{\"a\":\"\xff\xfe\"}",
        "{\"\xc0\x80\":1}", "\xef\xbb\xbf", "{\"linux\":{\"devices\":[{\"path\":\"/dev/\xed\xa0\x80\"}]}}"}) {
    EXPECT_FALSE(parse_spec(json)) << json;
  }
}

TEST(Spec, UsesTheLastOfTwoEqualKeys) {
  const Result<Spec> spec = parse_spec(R"({"linux":{"cgroupsPath":"/a"},"linux":{"cgroupsPath":"/b"}})");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->cgroups_path, "/b");
}

// A recursive parser would overflow the stack.
TEST(Spec, MayBeNestedDeeply) {
  const std::string open(200'000, '[');
  const std::string close(200'000, ']');
  EXPECT_FALSE(parse_spec(open));
  EXPECT_TRUE(parse_spec("{\"process\":" + open + close + "}"));
  EXPECT_FALSE(parse_spec("{\"linux\":{\"devices\":" + open + close + "}}"));
}

// The rules are written as text and parsed again, and nlohmann writes by recursion.
TEST(Spec, IsRefusedWhereItsRulesAreNestedDeeply) {
  const std::string nested = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_FALSE(parse_spec("{\"linux\":{\"resources\":{\"devices\":" + nested + "}}}"));
  EXPECT_FALSE(parse_spec("{\"linux\":{\"resources\":{\"devices\":[{\"x\":" + nested + "}]}}}"));
}

// parse_device_rules accepts a whole config too, so an object in place of the list must not be passed to it.
TEST(Spec, IsRefusedWhereTheListOfRulesIsAnotherConfig) {
  EXPECT_FALSE(parse_spec(
      R"({"linux":{"resources":{"devices":{"linux":{"resources":{"devices":[{"allow":true,"access":"rwm"}]}}}}}})"));
}

TEST(ParseRoot, ReadsOnlyTheRoot) {
  EXPECT_EQ(*parse_root(R"({"linux":{"devices":"anything"},"root":{"path":"/a \"b\"","readonly":true}})"), "/a \"b\"");
  EXPECT_EQ(*parse_root(R"({"process":{"root":{"path":"/no"}}})"), "");
  EXPECT_EQ(*parse_root(R"({"root":null})"), "");
  EXPECT_EQ(*parse_root(R"({"root":"/no"})"), "");
  for (const char* text : {"", "[]", "7", "{", R"({"root":{}} x)", R"({"root":{"path":"/a"},"root":{"path":"/b"}})"}) {
    EXPECT_FALSE(parse_root(text)) << text;
  }
}

}  // namespace
}  // namespace hf::oci
