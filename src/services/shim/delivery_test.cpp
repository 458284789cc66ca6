#include "services/shim/delivery.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "adapters/nvidia/driver_cache.h"
#include "support/fake_host.h"

namespace hf::shim {
namespace {

using container::NodeEdit;

constexpr const char* kUuid = "GPU-11111111-2222-3333-4444-555555555555";
constexpr const char* kVersion = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\n";
const std::string kPodCgroup =
    "/kubepods/besteffort/pod0f1e2d3c-1111-2222-3333-444455556666/"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

test::Files two_gpus() {
  const std::string library = "usr/lib/x86_64-linux-gnu/";
  return {{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
          {"proc/devices", "Character devices:\n  1 mem\n195 nvidia\n511 nvidia-uvm\n\nBlock devices:\n"},
          {"proc/driver/nvidia/version", kVersion},
          {"proc/driver/nvidia/gpus/0000:65:00.0/information",
           std::string("Model: \t A100\nGPU UUID: \t ") + kUuid + "\nDevice Minor: \t 0\n"},
          {"proc/driver/nvidia/gpus/0000:66:00.0/information",
           "Model: \t A100\nGPU UUID: \t GPU-22222222-2222-3333-4444-555555555555\nDevice Minor: \t 1\n"},
          {library + "libcuda.so.550.54.15",
           "\x7f"
           "ELF\x02"},
          {library + "libnvidia-ml.so.550.54.15",
           "\x7f"
           "ELF\x02"},
          {"dev/", ""}};
}

class DeliveryTest : public testing::Test {
 protected:
  explicit DeliveryTest(const test::Files& files = two_gpus()) : fake_(files), host_(fake_.open()) {
    config_.runtime.creates_nodes = false;
  }

  Result<Delivery> plan(const std::string& json) {
    const DeliveryInput input{
        "/bundle", *oci::parse_spec(json), "/usr/bin/holdfast-runtime", {}, Starter::containerd_shim};
    std::optional<Facts> facts = read_facts(host_, config_, input);
    return facts ? plan_delivery(host_, config_, input, *std::move(facts)) : Delivery();
  }

  static std::vector<std::string> paths(const Delivery& delivery) {
    std::vector<std::string> all;
    std::ranges::transform(delivery.change.edits.nodes, std::back_inserter(all), &NodeEdit::path);
    std::ranges::sort(all);
    return all;
  }

  std::string why_not(const std::string& json) {
    const Result<Delivery> delivery = plan(json);
    return delivery ? "" : delivery.error().message;
  }

  static std::string asking(const std::string& variables) { return R"({"process":{"env":[)" + variables + "]}}"; }

  test::FakeHost fake_;
  kernel::Host host_;
  config::Config config_ = *config::parse_config(std::string_view());
};

const std::vector<std::string> kAllNodesOfAGpu = {"/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia0",
                                                  "/dev/nvidiactl"};

TEST_F(DeliveryTest, GivesNothingWhereNothingIsRequested) {
  for (const char* json :
       {"{}", R"({"process":{"env":["A=b"]}})", R"({"process":{"env":["NVIDIA_VISIBLE_DEVICES=void"]}})",
        R"({"linux":{"devices":[{"path":"/dev/null","type":"c","major":1,"minor":3}]}})"}) {
    const Result<Delivery> delivery = plan(json);
    ASSERT_TRUE(delivery) << delivery.error().message;
    EXPECT_TRUE(delivery->change.edits.is_empty()) << json;
    EXPECT_TRUE(delivery->given.empty());
  }
}

TEST_F(DeliveryTest, GivesAGpuWithAllItsNodesAndCurrentNumbers) {
  for (const char* visible : {"0", "0,0", kUuid, "0,"}) {
    const Result<Delivery> delivery = plan(asking("\"NVIDIA_VISIBLE_DEVICES=" + std::string(visible) + "\""));
    ASSERT_TRUE(delivery) << delivery.error().message;
    EXPECT_EQ(paths(*delivery), kAllNodesOfAGpu) << visible;
    const auto uvm = std::ranges::find(delivery->change.edits.nodes, "/dev/nvidia-uvm", &NodeEdit::path);
    EXPECT_EQ(uvm->device->major, 511U);
    EXPECT_EQ(delivery->given.size(), 4U);
    EXPECT_EQ(delivery->change.edits.hooks.size(), 1U);
    EXPECT_GE(delivery->change.edits.mounts.size(), 2U);
  }
  const Result<Delivery> all = plan(asking("\"NVIDIA_VISIBLE_DEVICES=all\""));
  ASSERT_TRUE(all);
  EXPECT_EQ(all->given.size(), 5U);
}

TEST_F(DeliveryTest, RefusesValuesThatMeanNothing) {
  EXPECT_EQ(
      why_not(asking(R"("NVIDIA_VISIBLE_DEVICES=0","NVIDIA_DRIVER_CAPABILITIES=compue,utility")")),
      "NVIDIA_DRIVER_CAPABILITIES=compue,utility: there is no 'compue'; did you mean compute?; valid: all, compute, "
      "compat32, display, graphics, ngx, utility, video");
  for (const char* variable :
       {"NVIDIA_IMEX_CHANNELS=0,x", "NVIDIA_MIG_CONFIG_DEVICES=0", "NVIDIA_MIG_MONITOR_DEVICES=some",
        "NVIDIA_MIG_CONFIG_DEVICES=all", "NVIDIA_MIG_MONITOR_DEVICES=all"}) {
    EXPECT_NE(why_not(asking("\"NVIDIA_VISIBLE_DEVICES=0\",\"" + std::string(variable) + "\"")), "") << variable;
    EXPECT_EQ(why_not(asking("\"" + std::string(variable) + "\"")), "") << "without a request for GPUs: " << variable;
  }
  EXPECT_EQ(why_not(asking(R"("NVIDIA_VISIBLE_DEVICES=0","NVIDIA_GDS=true")")),
            "NVIDIA_GDS=true: valid: enabled, disabled");
  EXPECT_EQ(why_not(asking("\"NVIDIA_GDS=true\"")), "");
  EXPECT_NE(why_not(asking(R"("NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0","NVIDIA_DRIVER_CAPABILITIES=compue")"))
                .find("there is no 'compue'"),
            std::string::npos)
      << "where the environment names a CDI device";
}

TEST_F(DeliveryTest, RefusesChannelsAndMigDevicesThatTheDriverDoesNotOffer) {
  EXPECT_EQ(
      why_not(asking(R"("NVIDIA_VISIBLE_DEVICES=0","NVIDIA_IMEX_CHANNELS=3")")),
      "/dev/nvidia-caps-imex-channels/channel3 is asked for by a variable or a mount, and the driver of this host "
      "does not offer it");
  EXPECT_NE(why_not(R"({"process":{"env":["NVIDIA_VISIBLE_DEVICES=0","NVIDIA_MIG_CONFIG_DEVICES=all"],
                        "capabilities":{"bounding":["CAP_SYS_ADMIN"]}}})")
                .find("/dev/nvidia-caps/nvidia-cap1"),
            std::string::npos);
}

TEST_F(DeliveryTest, RefusesAMountOfNoChannel) {
  const std::string mounts = R"({"mounts":[
      {"source":"/dev/null","destination":"/var/run/nvidia-container-devices/0"},
      {"source":"/dev/null","destination":"/var/run/nvidia-container-devices/imex/)";
  EXPECT_EQ(why_not(mounts + "x\"}]}"),
            "a mount at /var/run/nvidia-container-devices/imex/x: an IMEX channel is a number");
}

TEST_F(DeliveryTest, SaysWhichWishesItIgnores) {
  const auto notes = [this](const std::string& json) {
    const Result<Delivery> delivery = plan(json);
    EXPECT_TRUE(delivery) << delivery.error().message;
    return delivery ? delivery->notes : std::vector<std::string>();
  };
  EXPECT_EQ(notes(asking(R"("NVIDIA_VISIBLE_DEVICES=0","NVIDIA_GDS=enabled","NVIDIA_MOFED=disabled")")),
            std::vector<std::string>{"NVIDIA_GDS=enabled has no effect: this host has no such device"});
  config_.runtime.environment = config::Trust::never;
  EXPECT_EQ(notes(asking("\"NVIDIA_VISIBLE_DEVICES=0\"")),
            std::vector<std::string>{"NVIDIA_VISIBLE_DEVICES=0 has no effect: runtime.environment is 'never'"});
}

TEST_F(DeliveryTest, GivesNoUvmWithoutTheComputeCapability) {
  const Result<Delivery> delivery = plan(asking(R"("NVIDIA_VISIBLE_DEVICES=0","NVIDIA_DRIVER_CAPABILITIES=utility")"));
  ASSERT_TRUE(delivery);
  EXPECT_EQ(paths(*delivery), (std::vector<std::string>{"/dev/nvidia0", "/dev/nvidiactl"}));
}

TEST_F(DeliveryTest, RefusesAnUnknownGpuAndListsTheKnownOnes) {
  for (const char* gpu : {"99", "GPU-no", "0,99", "3:1"}) {
    const std::string why = why_not(asking("\"NVIDIA_VISIBLE_DEVICES=" + std::string(gpu) + "\""));
    EXPECT_NE(why.find("no GPU here is called"), std::string::npos) << why;
    EXPECT_NE(why.find(kUuid), std::string::npos) << why;
    EXPECT_EQ(why.find('\n'), std::string::npos);
  }
}

TEST_F(DeliveryTest, RefusesAnImageThatRequiresANewerDriver) {
  const std::string why =
      why_not(asking(R"("NVIDIA_VISIBLE_DEVICES=0","NVIDIA_REQUIRE_CUDA=cuda>=13.0 brand=tesla,driver>=570")"));
  EXPECT_NE(why.find("NVIDIA_REQUIRE_CUDA"), std::string::npos) << why;
  EXPECT_NE(why.find("12.4"), std::string::npos) << why;
}

TEST_F(DeliveryTest, AddsNodesThatAPluginLeftOutAndCorrectsStaleNumbers) {
  const Result<Delivery> delivery = plan(R"({"linux":{"devices":[
      {"path":"/dev/nvidia0","type":"c","major":195,"minor":0},{"path":"/dev/nvidiactl","type":"c","major":195,"minor":255},
      {"path":"/dev/nvidia-uvm-tools","type":"c","major":510,"minor":1}],
      "resources":{"devices":[{"allow":false,"access":"rwm"},{"allow":true,"type":"c","major":195,"access":"rwm"},
      {"allow":true,"type":"c","major":510,"minor":1,"access":"rw"}]}}})");
  ASSERT_TRUE(delivery) << delivery.error().message;
  EXPECT_EQ(paths(*delivery), kAllNodesOfAGpu);
  const auto tools = std::ranges::find(delivery->change.edits.nodes, "/dev/nvidia-uvm-tools", &NodeEdit::path);
  EXPECT_EQ(tools->device->major, 511U);
  EXPECT_TRUE(delivery->change.edits.mounts.empty()) << "no libraries were requested";
}

TEST_F(DeliveryTest, IgnoresTheImagesEnvironmentInAPod) {
  const std::string json = R"({"process":{"env":["NVIDIA_VISIBLE_DEVICES=all"]},"linux":{"cgroupsPath":")" +
                           kPodCgroup + R"("},"annotations":{"io.kubernetes.cri.container-name":"main"}})";
  const Result<Delivery> delivery = plan(json);
  ASSERT_TRUE(delivery) << delivery.error().message;
  EXPECT_TRUE(delivery->change.edits.is_empty());
  EXPECT_FALSE(delivery->notes.empty()) << "a note says so";
}

TEST_F(DeliveryTest, NotesAGpuThatIsNotHereAndWasNotAllocatedInAPod) {
  const Result<Delivery> delivery =
      plan(R"({"process":{"env":["NVIDIA_VISIBLE_DEVICES=7"]},"linux":{"cgroupsPath":")" + std::string(kPodCgroup) +
           R"("},"annotations":{"io.kubernetes.cri.container-name":"main"}})");
  ASSERT_TRUE(delivery) << delivery.error().message;
  EXPECT_TRUE(delivery->change.edits.is_empty());
  EXPECT_TRUE(std::ranges::any_of(delivery->notes, [](const std::string& note) {
    return note.contains("not given: GPU '7'") && note.contains("GPUs here: index 0");
  }));
}

TEST_F(DeliveryTest, RemovesNvidiasHooksThatItReplaces) {
  const Result<Delivery> delivery = plan(R"({"process":{"env":["NVIDIA_VISIBLE_DEVICES=0"]},
      "hooks":{"prestart":[{"path":"/usr/bin/nvidia-container-runtime-hook"}]}})");
  ASSERT_TRUE(delivery);
  EXPECT_EQ(delivery->change.dropped_hooks, std::vector<std::string>{"/usr/bin/nvidia-container-runtime-hook"});
}

class ImexTest : public DeliveryTest {
 protected:
  ImexTest() : DeliveryTest(files()) {}
  static test::Files files() {
    test::Files all = two_gpus();
    all["proc/devices"] =
        "Character devices:\n195 nvidia\n235 nvidia-caps-imex-channels\n511 nvidia-uvm\n\nBlock devices:\n";
    return all;
  }
  std::vector<std::string> channels(const std::string& rest) {
    const Result<Delivery> delivery = plan(R"({"mounts":[
        {"source":"/dev/null","destination":"/var/run/nvidia-container-devices/0"},
        {"source":"/dev/null","destination":"/var/run/nvidia-container-devices/imex/7"}])" +
                                           rest + "}");
    EXPECT_TRUE(delivery) << delivery.error().message;
    std::vector<std::string> found = delivery ? paths(*delivery) : std::vector<std::string>();
    std::erase_if(found, [](const std::string& path) { return !path.contains("imex"); });
    return found;
  }
};

TEST_F(ImexTest, GivesTheChannelsOfMountsRatherThanThoseOfTheEnvironment) {
  const std::vector<std::string> seven = {"/dev/nvidia-caps-imex-channels/channel7"};
  EXPECT_EQ(channels(""), seven);
  EXPECT_EQ(channels(R"(,"process":{"env":["NVIDIA_IMEX_CHANNELS=0,1"]})"), seven);
  EXPECT_TRUE(channels(R"(,"linux":{"cgroupsPath":")" + kPodCgroup + "\"}").empty()) << "kubelet allocated none";
}

// One GPU that is cut into parts.
class MigTest : public DeliveryTest {
 protected:
  MigTest() : DeliveryTest(files()) {}
  static test::Files files() {
    test::Files all = two_gpus();
    all.erase("proc/driver/nvidia/gpus/0000:66:00.0/information");
    all["proc/devices"] = "Character devices:\n195 nvidia\n241 nvidia-caps\n511 nvidia-uvm\n\nBlock devices:\n";
    return all;
  }
};

TEST_F(MigTest, APartOfTheOnlyGpuIsNotEveryGpu) {
  const auto has_every_gpu = [this](const std::string& more) {
    const Result<Delivery> delivery = plan(R"({"linux":{"devices":[
        {"path":"/dev/nvidia0","type":"c","major":195,"minor":0})" +
                                           more + R"(],"resources":{"devices":[{"allow":false,"access":"rwm"},
        {"allow":true,"type":"c","major":195,"access":"rw"},{"allow":true,"type":"c","major":241,"access":"r"}]}}})");
    EXPECT_TRUE(delivery) << delivery.error().message;
    return delivery && delivery->has_every_gpu;
  };
  EXPECT_TRUE(has_every_gpu(""));
  EXPECT_FALSE(has_every_gpu(R"(,{"path":"/dev/nvidia-caps/nvidia-cap21","type":"c","major":241,"minor":21},
                                {"path":"/dev/nvidia-caps/nvidia-cap22","type":"c","major":241,"minor":22})"));
}

class StepsTest : public DeliveryTest {
 protected:
  void SetUp() override {
    config_.runtime.creates_nodes = true;
    if (::geteuid() != 0) {
      GTEST_SKIP() << "only root can create nodes";
    }
    if (::mknod((fake_.root() + "/dev/nvidia-uvm").c_str(), S_IFCHR | 0640, makedev(509, 0)) != 0) {
      GTEST_SKIP() << "no nodes can be created here";
    }
  }

  // What is below /dev of the host.
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(fake_.root() + "/dev")) {
      struct stat status{};
      EXPECT_EQ(::lstat(entry.path().c_str(), &status), 0);
      const std::string name = entry.path().string().substr(fake_.root().size());
      all.push_back(name + (S_ISCHR(status.st_mode) ? " " + std::to_string(major(status.st_rdev)) + ":" +
                                                          std::to_string(minor(status.st_rdev))
                            : S_ISLNK(status.st_mode) ? " → " + std::filesystem::read_symlink(entry.path()).string()
                                                      : ""));
    }
    std::ranges::sort(all);
    return all;
  }
};

TEST_F(StepsTest, AreListedByThePlanAndTakenOnlyByCarryOut) {
  const std::vector<std::string> before = files();
  const Result<Delivery> delivery =
      plan(asking(R"("NVIDIA_VISIBLE_DEVICES=0","NVIDIA_DRIVER_CAPABILITIES=utility,compute")"));
  ASSERT_TRUE(delivery) << delivery.error().message;
  const auto node = [](const char* path, std::uint32_t major, std::uint32_t minor) {
    return HostStep{CreateNode{path, {device::Kind::character, major, minor}, {}}};
  };
  const auto link = [](const char* path, const char* target) { return HostStep{CreateSymlink{path, target}, true}; };
  std::vector<HostStep> steps = {node("/dev/nvidia-uvm", 511, 0),       link("/dev/char/511:0", "../nvidia-uvm"),
                                 node("/dev/nvidia-uvm-tools", 511, 1), link("/dev/char/511:1", "../nvidia-uvm-tools"),
                                 node("/dev/nvidia0", 195, 0),          link("/dev/char/195:0", "../nvidia0"),
                                 node("/dev/nvidiactl", 195, 255),      link("/dev/char/195:255", "../nvidiactl")};
  ASSERT_FALSE(delivery->steps.empty());
  ASSERT_TRUE(std::holds_alternative<CacheDriver>(delivery->steps.back().change));
  steps.push_back(delivery->steps.back());
  EXPECT_EQ(delivery->steps, steps);
  EXPECT_EQ(files(), before);
  EXPECT_FALSE(std::filesystem::exists(fake_.root() + nvidia::kDriverCache));
  const Result<void> done = carry_out(host_, delivery->steps);
  ASSERT_TRUE(done) << done.error().message;
  const std::vector<std::string> after = {"/dev/char",
                                          "/dev/char/195:0 → ../nvidia0",
                                          "/dev/char/195:255 → ../nvidiactl",
                                          "/dev/char/511:0 → ../nvidia-uvm",
                                          "/dev/char/511:1 → ../nvidia-uvm-tools",
                                          "/dev/nvidia-uvm 511:0",
                                          "/dev/nvidia-uvm-tools 511:1",
                                          "/dev/nvidia0 195:0",
                                          "/dev/nvidiactl 195:255"};
  EXPECT_EQ(files(), after);
  EXPECT_TRUE(std::filesystem::exists(fake_.root() + nvidia::kDriverCache));
  const Result<Delivery> again = plan(asking("\"NVIDIA_VISIBLE_DEVICES=0\""));
  ASSERT_TRUE(again);
  EXPECT_TRUE(std::ranges::all_of(again->steps, &HostStep::may_fail)) << "no node is created twice";
  ASSERT_TRUE(carry_out(host_, again->steps));
  EXPECT_EQ(files(), after);
}

TEST_F(StepsTest, AreNotPlannedWhereTheConfigForbidsThem) {
  config_.runtime.creates_nodes = false;
  const Result<Delivery> delivery = plan(asking("\"NVIDIA_VISIBLE_DEVICES=0\""));
  ASSERT_TRUE(delivery) << delivery.error().message;
  EXPECT_TRUE(std::ranges::all_of(
      delivery->steps, [](const HostStep& step) { return std::holds_alternative<CacheDriver>(step.change); }));
  EXPECT_EQ(delivery->given.size(), 4U);
}

TEST_F(DeliveryTest, RefusesACdiNameThatIsInNoSpec) {
  const std::string why = why_not(R"({"annotations":{"cdi.k8s.io/x":"vendor.com/thing=1"}})");
  EXPECT_NE(why.find("vendor.com/thing=1"), std::string::npos) << why;
}

// A CDI device without nodes can still bring mounts of the host and hooks that run as root.
class CdiTest : public DeliveryTest {
 protected:
  explicit CdiTest(const test::Files& all = files()) : DeliveryTest(all) {}
  static test::Files files() {
    test::Files all = two_gpus();
    all["etc/cdi/vendor.yaml"] =
        "cdiVersion: 0.6.0\nkind: vendor.com/thing\ndevices:\n- name: \"1\"\n  containerEdits:\n"
        "    mounts:\n    - {hostPath: /etc, containerPath: /host-etc, options: [rw]}\n";
    return all;
  }
  static std::string in_pod(const std::string& rest) {
    return R"({"linux":{"cgroupsPath":")" + kPodCgroup +
           R"("},"annotations":{"io.kubernetes.cri.container-name":"main")" + rest;
  }
};

TEST_F(CdiTest, DoesNotTrustADeviceWithoutNodesInAPod) {
  for (const std::string& json : {in_pod(R"(,"cdi.k8s.io/x":"vendor.com/thing=1"}})"),
                                  in_pod(R"(},"process":{"env":["NVIDIA_VISIBLE_DEVICES=vendor.com/thing=1"]}})")}) {
    const Result<Delivery> delivery = plan(json);
    ASSERT_TRUE(delivery) << delivery.error().message;
    EXPECT_TRUE(delivery->change.edits.is_empty());
    EXPECT_FALSE(delivery->notes.empty()) << "a note says so";
  }
}

TEST_F(CdiTest, RefusesAnotherVendorsDeviceThatAnImageNamesOutsidePods) {
  const std::string why = why_not(asking(R"("NVIDIA_VISIBLE_DEVICES=vendor.com/thing=1")"));
  EXPECT_NE(why.find("vendor.com/thing=1"), std::string::npos) << why;
  const Result<Delivery> delivery = plan(R"({"annotations":{"cdi.k8s.io/x":"vendor.com/thing=1"}})");
  ASSERT_TRUE(delivery) << delivery.error().message;
  EXPECT_EQ(delivery->change.edits.mounts.size(), 1U) << "the user of containerd may request it";
}

class AllocatedByNameTest : public CdiTest {
 protected:
  AllocatedByNameTest() : CdiTest(with_allocation()) {}
  // AllocResp: the CDI device vendor.com/gone=1.
  static test::Files with_allocation() {
    test::Files all = files();
    all["var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"] =
        R"({"Data":{"PodDeviceEntries":[{"PodUID":"0f1e2d3c-1111-2222-3333-444455556666","ContainerName":"main",)"
        R"("ResourceName":"vendor.com/gone","DeviceIDs":{"0":["1"]},"AllocResp":"KhMKEXZlbmRvci5jb20vZ29uZT0x"}],)"
        R"("RegisteredDevices":{}},"Checksum":1})";
    return all;
  }
};

TEST_F(AllocatedByNameTest, IsRefusedWhereNoSpecHasIt) {
  const std::string asks = in_pod(R"(,"cdi.k8s.io/x":"vendor.com/gone=1"}})");
  const std::string why = why_not(asks);
  EXPECT_NE(why.find("'vendor.com/gone=1' is in no spec"), std::string::npos) << why;
}

class AllocatedTest : public DeliveryTest {
 protected:
  AllocatedTest() : DeliveryTest(files()) {}
  static test::Files files() {
    test::Files all = two_gpus();
    all["var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"] =
        R"({"Data":{"PodDeviceEntries":[{"PodUID":"0f1e2d3c-1111-2222-3333-444455556666","ContainerName":"main",)"
        R"("ResourceName":"nvidia.com/gpu","DeviceIDs":{"0":[")" +
        std::string(kUuid) + R"("]},"AllocResp":""}],"RegisteredDevices":{}},"Checksum":1})";
    return all;
  }
};

TEST_F(AllocatedTest, GivesWhatKubeletAllocatedInAPod) {
  for (const char* visible : {"all", kUuid}) {
    const std::string json = R"({"process":{"env":["NVIDIA_VISIBLE_DEVICES=)" + std::string(visible) +
                             R"("]},"linux":{"cgroupsPath":")" + kPodCgroup +
                             R"("},"annotations":{"io.kubernetes.cri.container-name":"main"}})";
    const Result<Delivery> delivery = plan(json);
    ASSERT_TRUE(delivery) << delivery.error().message;
    EXPECT_EQ(paths(*delivery), kAllNodesOfAGpu) << visible;
    EXPECT_FALSE(delivery->change.edits.mounts.empty());
  }
}

TEST_F(AllocatedTest, SaysWhatAPodDoesNotGet) {
  const std::string json = R"({"process":{"env":["NVIDIA_VISIBLE_DEVICES=all","NVIDIA_GDS=enabled"]},
                               "linux":{"cgroupsPath":")" +
                           kPodCgroup + R"("},"annotations":{"io.kubernetes.cri.container-name":"main"}})";
  const Result<Delivery> delivery = plan(json);
  ASSERT_TRUE(delivery) << delivery.error().message;
  const std::vector<std::string> notes = {
      "not given: /dev/nvidia1: kubelet allocated no such device to this container of the pod",
      "not given: NVIDIA_GDS=enabled: this container is in a pod, and no rule below 'trust:' in the config vouches for "
      "it"};
  EXPECT_EQ(delivery->notes, notes);
}

TEST_F(AllocatedTest, DoesNotTrustAnotherContainersNameInAnAnnotation) {
  const std::string json = R"({"process":{"env":["NVIDIA_VISIBLE_DEVICES=all"]},"linux":{"cgroupsPath":")" +
                           kPodCgroup +
                           R"("},"annotations":{"io.kubernetes.cri.container-name":"other",)"
                           R"("io.kubernetes.container.name":"main"}})";
  const Result<Delivery> delivery = plan(json);
  ASSERT_TRUE(delivery) << delivery.error().message;
  EXPECT_TRUE(delivery->change.edits.is_empty());
}

class NoDriverTest : public DeliveryTest {
 protected:
  NoDriverTest() : DeliveryTest(files()) {}
  static test::Files files() {
    return {{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
            {"proc/devices", "Character devices:\n  1 mem\n\nBlock devices:\n"}};
  }
};

TEST_F(NoDriverTest, RefusesAGpuWhereNoDriverIsLoaded) {
  for (const char* gpu : {"all", "0", kUuid}) {
    const std::string why = why_not(asking("\"NVIDIA_VISIBLE_DEVICES=" + std::string(gpu) + "\""));
    EXPECT_NE(why.find("modprobe nvidia"), std::string::npos) << why;
  }
}

class NoUvmTest : public DeliveryTest {
 protected:
  NoUvmTest() : DeliveryTest(files()) {}
  static test::Files files() {
    test::Files all = two_gpus();
    all["proc/devices"] = "Character devices:\n195 nvidia\n\nBlock devices:\n";
    return all;
  }
};

TEST_F(NoUvmTest, RefusesAGpuWithoutUvmAndNamesTheCure) {
  EXPECT_NE(why_not(asking("\"NVIDIA_VISIBLE_DEVICES=0\"")).find("modprobe nvidia-uvm"), std::string::npos);
  EXPECT_TRUE(plan(asking(R"("NVIDIA_VISIBLE_DEVICES=0","NVIDIA_DRIVER_CAPABILITIES=utility")")));
}

}  // namespace
}  // namespace hf::shim
