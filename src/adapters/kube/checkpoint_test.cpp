#include "adapters/kube/checkpoint.h"

#include <cstdint>

#include <gtest/gtest.h>

#include "adapters/kube/device_plugin.pb.h"

namespace hf::kube {
namespace {

using Strings = std::vector<std::string>;

std::string base64(const std::string& bytes) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (i + j < bytes.size() ? std::uint8_t(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += i + j > bytes.size() ? '=' : kAlphabet[bits >> (18 - 6 * j) & 0x3f];
    }
  }
  return text;
}

std::string plugin_response() {
  v1beta1::ContainerAllocateResponse response;
  (*response.mutable_envs())["NVIDIA_VISIBLE_DEVICES"] = "GPU-1";
  (*response.mutable_annotations())["cdi.k8s.io/nvidia-device-plugin_1"] = "nvidia.com/gpu=a, nvidia.com/gpu=b,";
  (*response.mutable_annotations())["another.io/x"] = "nvidia.com/gpu=c";
  v1beta1::DeviceSpec* device = response.add_devices();
  device->set_container_path("/dev/nvidia0");
  device->set_host_path("/dev/nvidia3");
  device->set_permissions("rw");
  response.add_cdi_devices()->set_name("nvidia.com/gpu=d");
  response.add_mounts()->set_host_path("/x");
  return base64(response.SerializeAsString());
}

std::string with_response(const std::string& response) {
  return R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"main","ResourceName":"nvidia.com/gpu",)"
         R"("DeviceIDs":{"0":["GPU-1"],"-1":["GPU-2","GPU-3"]},"AllocResp":")" +
         response +
         R"("}],"RegisteredDevices":{"nvidia.com/gpu":["GPU-1","GPU-2"],"empty":[],"none":null}},"Checksum":7})";
}

TEST(Checkpoint, ListsWhatAPluginAllocatedToAContainer) {
  const Result<Checkpoint> checkpoint = parse_checkpoint(with_response(plugin_response()));
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  ASSERT_EQ(checkpoint->allocations.size(), 1U);
  const Allocation& allocation = checkpoint->allocations[0];
  EXPECT_EQ(allocation.pod_uid, "u");
  EXPECT_EQ(allocation.container, "main");
  EXPECT_EQ(allocation.resource, "nvidia.com/gpu");
  EXPECT_EQ(allocation.ids, (Strings{"GPU-2", "GPU-3", "GPU-1"}));
  EXPECT_EQ(allocation.environment, (std::map<std::string, std::string>{{"NVIDIA_VISIBLE_DEVICES", "GPU-1"}}));
  ASSERT_EQ(allocation.devices.size(), 1U);
  EXPECT_EQ(allocation.devices[0].container_path, "/dev/nvidia0");
  EXPECT_EQ(allocation.devices[0].host_path, "/dev/nvidia3");
  EXPECT_EQ(allocation.devices[0].permissions, "rw");
  EXPECT_EQ(allocation.cdi_devices, (Strings{"nvidia.com/gpu=a", "nvidia.com/gpu=b", "nvidia.com/gpu=d"}));
  EXPECT_EQ(checkpoint->registered.at("nvidia.com/gpu"), (Strings{"GPU-1", "GPU-2"}));
  EXPECT_TRUE(checkpoint->registered.at("none").empty());
}

TEST(Checkpoint, OfAnOlderKubeletHasAPlainListOfIds) {
  const Result<Checkpoint> checkpoint = parse_checkpoint(
      R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":["a","b"],)"
      R"("AllocResp":""}],"RegisteredDevices":{}},"Checksum":1})");
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->allocations.at(0).ids, (Strings{"a", "b"}));
  EXPECT_TRUE(checkpoint->allocations.at(0).devices.empty());
}

TEST(Checkpoint, MayBeEmpty) {
  for (const char* json : {R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1})",
                           R"({"Data":{"PodDeviceEntries":[],"RegisteredDevices":null}})", R"({"Data":{}})"}) {
    const Result<Checkpoint> checkpoint = parse_checkpoint(json);
    ASSERT_TRUE(checkpoint) << json;
    EXPECT_TRUE(checkpoint->allocations.empty()) << json;
  }
}

TEST(Checkpoint, IsRefusedWhenItCannotBeParsed) {
  for (const char* json : {"", "{}", "[]", "null", R"({"Data":null})", R"({"Data":[]})", R"({"Data":"x"})",
                           "{\"Data\":{}", "{\"Data\":{\"a\":\"\xff\"}}"}) {
    const Result<Checkpoint> checkpoint = parse_checkpoint(json);
    ASSERT_FALSE(checkpoint) << json;
    EXPECT_NE(checkpoint.error().message.find("kubelet_internal_checkpoint"), std::string::npos);
  }
}

TEST(Checkpoint, NamesTheContainerWhoseResponseIsDamaged) {
  const std::string good = plugin_response();
  // First texts that are not base64, then base64 of bytes that are no message: a length beyond the end, a field of
  // number 0, a string that is not UTF-8.
  for (const std::string& response :
       {std::string("A"), std::string("AAA"), std::string("===="), std::string("A==="), std::string("=AAA"),
        std::string("AA=A"), std::string("AA-_"), std::string("AA A"), good.substr(1), base64("\x1a\x7f"),
        base64(std::string("\0", 1)), base64("\x2a\x03\x0a\x01\xff"), base64(std::string(64, '\xff'))}) {
    const Result<Checkpoint> checkpoint = parse_checkpoint(with_response(response));
    ASSERT_FALSE(checkpoint) << response;
    EXPECT_NE(checkpoint.error().message.find("u/main"), std::string::npos) << checkpoint.error().message;
  }
}

TEST(Checkpoint, IgnoresFieldsOfAnotherType) {
  const Result<Checkpoint> checkpoint = parse_checkpoint(
      R"({"Data":{"PodDeviceEntries":[{"PodUID":7,"DeviceIDs":{"0":"x","1":[1,null,"a"]}},1,null,"x"],)"
      R"("RegisteredDevices":{"r":{"a":1}}}})");
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->allocations.at(0).pod_uid, "");
  EXPECT_EQ(checkpoint->allocations.at(0).ids, Strings{"a"});
  EXPECT_TRUE(checkpoint->registered.at("r").empty());
}

TEST(Checkpoint, MayBeNestedDeeply) {
  const std::string open(200'000, '[');
  EXPECT_FALSE(parse_checkpoint(open));
  EXPECT_TRUE(parse_checkpoint(R"({"Data":{"PodDeviceEntries":)" + open + std::string(open.size(), ']') + "}}"));
}

std::string prepared(const std::string& data) {
  std::string text;
  for (const char character : data) {
    text += character == '"' ? "\\\"" : std::string(1, character);
  }
  return R"({"Data":")" + text + R"(","Checksum":1})";
}

TEST(PreparedClaims, ListThePodsAndTheDevices) {
  const Result<std::vector<PreparedClaim>> claims = parse_prepared_claims(prepared(
      R"({"kind":"DRACheckpoint","ClaimInfoStateList":[{"ClaimUID":"c","ClaimName":"gpu","Namespace":"ml",)"
      R"("PodUIDs":{"u1":{},"u2":{}},"DriverState":{"gpu.nvidia.com":{"Devices":[{"PoolName":"p","DeviceName":"gpu-0",)"
      R"("CDIDeviceIDs":["k8s.gpu.nvidia.com/device=0"]},{"CDIDeviceIDs":null}]},"other":{}}},{"PodUIDs":["u3"]}]})"));
  ASSERT_TRUE(claims) << claims.error().message;
  ASSERT_EQ(claims->size(), 2U);
  EXPECT_EQ(claims->at(0).name, "ml/gpu");
  EXPECT_EQ(claims->at(0).pod_uids, (Strings{"u1", "u2"}));
  EXPECT_EQ(claims->at(0).cdi_devices, Strings{"k8s.gpu.nvidia.com/device=0"});
  EXPECT_EQ(claims->at(1).pod_uids, Strings{"u3"});
}

TEST(PreparedClaims, MayBeNone) {
  for (const char* data : {"{}", R"({"ClaimInfoStateList":null})", R"({"ClaimInfoStateList":{}})"}) {
    EXPECT_TRUE(parse_prepared_claims(prepared(data))->empty()) << data;
  }
}

TEST(PreparedClaims, IgnoreFieldsOfAnotherType) {
  const auto claims = parse_prepared_claims(prepared(
      R"({"ClaimInfoStateList":[1,null,{"PodUIDs":7,"DriverState":[]},{"DriverState":{"d":{"Devices":{}}}}]})"));
  ASSERT_TRUE(claims);
  EXPECT_EQ(claims->size(), 4U);
}

TEST(PreparedClaims, AreRefusedWhenTheyCannotBeParsed) {
  for (const char* json : {"", "{}", R"({"Data":{}})", R"({"Data":""})", R"({"Data":"[]"})", R"({"Data":"{"})", "[]"}) {
    EXPECT_FALSE(parse_prepared_claims(json)) << json;
  }
}

TEST(CdiNames, AreReadFromCdiAnnotations) {
  EXPECT_EQ(cdi_names_in({{"cdi.k8s.io/a", "v/c=1, v/c=2 ,,"}, {"cdi.k8s.iox", "v/c=3"}, {"x", "v/c=4"}}),
            (Strings{"v/c=1", "v/c=2"}));
}

TEST(CpuState, ListsTheExclusiveCpusOfAContainer) {
  const Result<CpuState> state = parse_cpu_state(
      R"({"policyName":"static","defaultCpuSet":"0","entries":{"u":{"main":"1-2","side":"3"}},"checksum":2562873961})");
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->policy, "static");
  EXPECT_EQ(state->exclusive, (std::map<std::string, std::string>{{"u/main", "1-2"}, {"u/side", "3"}}));
}

TEST(CpuState, MayHaveNoEntries) {
  for (const char* json : {R"({"policyName":"none","defaultCpuSet":"","checksum":1})", R"({"entries":null})",
                           R"({"policyName":"static","entries":{"0123abcd":"1-2"}})", R"({"entries":[]})"}) {
    const Result<CpuState> state = parse_cpu_state(json);
    ASSERT_TRUE(state) << json;
    EXPECT_TRUE(state->exclusive.empty()) << json;
  }
  EXPECT_FALSE(parse_cpu_state("[]"));
  EXPECT_FALSE(parse_cpu_state(""));
}

}  // namespace
}  // namespace hf::kube
