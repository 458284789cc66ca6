#include "services/plugin/pod_devices.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "support/fake_host.h"

namespace hf::plugin {
namespace {

using resource::Taken;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kNow = 1000 * kSecond;
const std::string kCheckpoint = "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint";
const std::string kState = "var/lib/kubelet/dra_manager_state";
const std::vector<std::string> kFirst = {"/dev/nvidia0", "/dev/nvidiactl"};
const std::vector<std::string> kOther = {"/dev/nvidia1", "/dev/nvidiactl"};

std::string given_to(const std::string& pod, const std::string& id) {
  return R"({"Data":{"PodDeviceEntries":[{"PodUID":")" + pod +
         R"(","ContainerName":"main","ResourceName":"nvidia.com/gpu","DeviceIDs":{"-1":[")" + id +
         R"("]},"AllocResp":""}],"RegisteredDevices":{}},"Checksum":0})";
}

std::string claimed_by(const std::string& pod, const std::string& name) {
  return R"({"Data":"{\"ClaimInfoStateList\":[{\"Namespace\":\"training\",\"ClaimName\":\"gpus\",\"PodUIDs\":{\")" +
         pod + R"(\":{}},\"DriverState\":{\"gpu.holdfast.dev\":{\"Devices\":[{\"CDIDeviceIDs\":[\")" + name +
         R"(\"]}]}}}]}","Checksum":0})";
}

PodDevices::Offers offers() {
  return {{"nvidia.com/gpu",
           "nvidia",
           1,
           {{"0", "0", "GPU-0", kFirst, std::nullopt, std::nullopt},
            {"1", "1", "GPU-1", kOther, std::nullopt, std::nullopt}}}};
}

class PodDevicesTest : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(fake.root() + "/" + file).parent_path());
    std::ofstream(fake.root() + "/" + file) << text;
  }
  void create_pod(const std::string& uid) const {
    std::filesystem::create_directories(fake.root() + "/var/lib/kubelet/pods/" + uid);
  }

  test::FakeHost fake{
      {{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}, {"proc/stat", "btime 1000\n"}}};
  kernel::Host host = fake.open();
  PodDevices pods{host, "/var/lib/kubelet"};
};

TEST_F(PodDevicesTest, APodHasItsDevicesUntilItsDirectoryIsGone) {
  const Taken taken = {{kOther, "the pod uid-1 has it as nvidia.com/gpu"}};
  write(kCheckpoint, given_to("uid-1", "1"));
  EXPECT_EQ(pods.given(offers(), kNow), taken) << "nothing is known of pods' directories";
  create_pod("uid-1");
  EXPECT_EQ(pods.given(offers(), kNow), taken);
  EXPECT_EQ(pods.ids_given_to("uid-1"), std::set<std::string>{"1"});
  std::filesystem::remove(fake.root() + "/var/lib/kubelet/pods/uid-1");
  EXPECT_TRUE(pods.given(offers(), kNow).empty()) << "kubelet has not pruned its checkpoint";
}

TEST_F(PodDevicesTest, WhatAllocateGaveIsTakenBeforeKubeletHasWrittenIt) {
  const Taken taken = {{kFirst, "a pod that is about to start has it as nvidia.com/gpu"}};
  create_pod("uid-0");
  pods.remember("nvidia.com/gpu", {"0"}, kNow);
  EXPECT_EQ(pods.given(offers(), kNow + 10 * kSecond), taken);
  write(kCheckpoint, given_to("uid-1", "0"));
  EXPECT_EQ(pods.given(offers(), kNow + 20 * kSecond), taken) << "it has no directory yet";
  create_pod("uid-1");
  EXPECT_EQ(pods.given(offers(), kNow + 30 * kSecond).at(kFirst), "the pod uid-1 has it as nvidia.com/gpu");
  std::filesystem::remove(fake.root() + "/var/lib/kubelet/pods/uid-1");
  EXPECT_TRUE(pods.given(offers(), kNow + 40 * kSecond).empty());
  pods.remember("nvidia.com/gpu", {"1"}, kNow);
  EXPECT_FALSE(pods.given(offers(), kNow + 300 * kSecond).empty());
  EXPECT_TRUE(pods.given(offers(), kNow + 301 * kSecond).empty()) << "its pod was never admitted";
}

TEST_F(PodDevicesTest, WhatAllocateGaveIsNotThatOfThePodThatHadItBefore) {
  create_pod("uid-0");
  write(kCheckpoint, given_to("uid-0", "0"));
  pods.remember("nvidia.com/gpu", {"0"}, kNow);
  EXPECT_EQ(pods.given(offers(), kNow).at(kFirst), "the pod uid-0 has it as nvidia.com/gpu");
  std::filesystem::remove(fake.root() + "/var/lib/kubelet/pods/uid-0");
  EXPECT_EQ(pods.given(offers(), kNow).at(kFirst), "a pod that is about to start has it as nvidia.com/gpu");
}

TEST_F(PodDevicesTest, KubeletSaysWhatClaimsHave) {
  const Taken taken = {{kOther, "the claim training/gpus has it"}};
  create_pod("uid-1");
  write(kState, claimed_by("uid-1", "nvidia.com/gpu=GPU-1"));
  EXPECT_EQ(pods.claimed(offers(), {}, {}), taken) << "by UUID, where kubelet knows it by index";
  EXPECT_TRUE(pods.claimed(offers(), {}, {"training/gpus"}).empty()) << "the driver knows better";
  EXPECT_EQ(pods.ids_given_to("uid-1"), std::set<std::string>{"GPU-1"});
  EXPECT_TRUE(pods.ids_given_to("uid-2").empty());
  write(kState, claimed_by("uid-1", "nvidia.com/gpu=GPU-9"));
  EXPECT_TRUE(pods.claimed(offers(), {}, {}).empty());
  write(kState, claimed_by("uid-2", "nvidia.com/gpu=GPU-1"));
  EXPECT_TRUE(pods.claimed(offers(), {}, {}).empty()) << "its pod is gone";
}

TEST_F(PodDevicesTest, KubeletMayHaveAnotherRoot) {
  PodDevices others(host, "/var/lib/k0s/kubelet");
  std::filesystem::create_directories(fake.root() + "/var/lib/k0s/kubelet/pods/uid-1");
  write("var/lib/k0s/kubelet/device-plugins/kubelet_internal_checkpoint", given_to("uid-1", "1"));
  EXPECT_EQ(others.given(offers(), kNow), (Taken{{kOther, "the pod uid-1 has it as nvidia.com/gpu"}}));
  EXPECT_TRUE(pods.given(offers(), kNow).empty());
}

}  // namespace
}  // namespace hf::plugin
