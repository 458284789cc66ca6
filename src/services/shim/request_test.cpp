#include "services/shim/request.h"

#include <gtest/gtest.h>

namespace hf::shim {
namespace {

using config::Trust;

DeviceRequest request(const std::string& json, const config::RuntimeSettings& settings = {},
                      Starter starter = Starter::containerd_shim) {
  return request_of(*oci::parse_spec(json), settings, starter);
}

std::string with_environment(const std::string& variables) { return R"({"process":{"env":[)" + variables + "]}}"; }

TEST(DeviceRequest, ReadsGpusFromTheEnvironment) {
  const DeviceRequest asked = request(with_environment(R"("NVIDIA_VISIBLE_DEVICES= 0 , 1,,0","NVIDIA_GDS=enabled")"));
  EXPECT_TRUE(asked.asks_nvidia());
  EXPECT_EQ(asked.nvidia.visible.ids, (std::vector<std::string>{"0", "1", "0"}));
  EXPECT_EQ(asked.nvidia_description, "NVIDIA_VISIBLE_DEVICES= 0 , 1,,0");
  EXPECT_EQ(asked.features, std::vector<std::string>{"NVIDIA_GDS"});
  for (const char* nothing : {R"("NVIDIA_VISIBLE_DEVICES=void")", R"("NVIDIA_VISIBLE_DEVICES=")", R"("A=b","FOO")",
                              R"("NVIDIA_VISIBLE_DEVICES=Void,")"}) {
    EXPECT_FALSE(request(with_environment(nothing)).asks_nvidia()) << nothing;
  }
}

TEST(DeviceRequest, ReadsCdiNamesFromTheEnvironment) {
  const DeviceRequest asked = request(with_environment(R"("NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0,1")"));
  EXPECT_EQ(asked.cdi_names, std::vector<std::string>{"nvidia.com/gpu=0"});
  EXPECT_EQ(asked.nvidia.visible.ids, std::vector<std::string>{"1"});
  EXPECT_TRUE(asked.nvidia.visible.cdi_names.empty()) << "they are in the request's own list";
  EXPECT_TRUE(asked.is_by_environment);
}

TEST(DeviceRequest, PrefersAnnotationsToMountsToTheEnvironment) {
  const std::string json = R"({"annotations":{"cdi.k8s.io/x":"nvidia.com/gpu=3"},
    "mounts":[{"source":"/dev/null","destination":"/var/run/nvidia-container-devices/GPU-1"}],
    "process":{"env":["NVIDIA_VISIBLE_DEVICES=all"]}})";
  const DeviceRequest by_annotation = request(json);
  EXPECT_EQ(by_annotation.cdi_names, std::vector<std::string>{"nvidia.com/gpu=3"});
  EXPECT_FALSE(by_annotation.asks_nvidia());
  const DeviceRequest by_mount = request(json, {.reads_annotations = false});
  EXPECT_EQ(by_mount.nvidia.visible.ids, std::vector<std::string>{"GPU-1"});
  EXPECT_FALSE(by_mount.nvidia.visible.all);
  const DeviceRequest by_environment = request(json, {.reads_annotations = false, .reads_mounts = false});
  EXPECT_TRUE(by_environment.nvidia.visible.all);
  const DeviceRequest by_nothing =
      request(json, {.reads_annotations = false, .reads_mounts = false, .environment = Trust::never});
  EXPECT_FALSE(by_nothing.asks_nvidia());
  EXPECT_EQ(by_nothing.nvidia.visible, nvidia::VisibleDevices()) << "what is not trusted is not in the request";
}

TEST(DeviceRequest, ReadsChannelsFromATrustedEnvironmentOnly) {
  const std::string json = R"({"process":{"env":["NVIDIA_IMEX_CHANNELS=3"]},
    "mounts":[{"source":"/dev/null","destination":"/var/run/nvidia-container-devices/GPU-1"}]})";
  EXPECT_EQ(request(json).nvidia.imex_channels, std::vector<std::uint32_t>{3});
  EXPECT_TRUE(request(json, {.environment = Trust::never}).nvidia.imex_channels.empty());
}

TEST(DeviceRequest, TrustsOnlyMountsOfDevNull) {
  const std::string json =
      R"({"mounts":[{"source":"/var/lib/docker/volumes/x","destination":"/var/run/nvidia-container-devices/all"},
          {"source":"/dev/null","destination":"/var/run/nvidia-container-devices/cdi/nvidia.com/gpu/2"},
          {"source":"/dev/null","destination":"/var/run/nvidia-container-devices/imex/7"}]})";
  const DeviceRequest asked = request(json);
  EXPECT_FALSE(asked.asks_nvidia());
  EXPECT_EQ(asked.cdi_names, std::vector<std::string>{"nvidia.com/gpu=2"});
  EXPECT_EQ(asked.nvidia.imex_channels, std::vector<std::uint32_t>{7});
  EXPECT_FALSE(asked.is_by_environment);
}

TEST(DeviceRequest, TrustsAnnotationsOnlyBelowAContainerdShim) {
  for (const char* manager : {"libpod", "containerd", ""}) {  // an image can set any value
    const std::string json = R"({"annotations":{"io.container.manager":")" + std::string(manager) +
                             R"(","cdi.k8s.io/x":"nvidia.com/gpu=3"}})";
    EXPECT_TRUE(request(json, {}, Starter::other).cdi_names.empty());
    EXPECT_EQ(request(json).cdi_names, std::vector<std::string>{"nvidia.com/gpu=3"});
  }
  EXPECT_EQ(starter_named("/usr/bin/containerd-shim-runc-v2", "/run/x/moby/abc"), Starter::containerd_shim);
  EXPECT_EQ(starter_named("/usr/bin/containerd-shim-runc-v2 (deleted)", "/b"), Starter::containerd_shim);
  EXPECT_EQ(starter_named("/usr/libexec/crio/conmon", "/b"), Starter::conmon);
  EXPECT_TRUE(request(R"({"annotations":{"cdi.k8s.io/x":"nvidia.com/gpu=3"}})", {}, Starter::conmon).cdi_names.empty());
  for (const char* program : {"/usr/bin/containerd", "", "/containerd-shim/sh", "/conmon/sh", "/tmp/my-conmon"}) {
    EXPECT_EQ(starter_named(program, "/run/x/k8s.io/abc"), Starter::other) << program;
  }
}

TEST(IsOfPod, HoldsUnlessTheContainerIsKnownToBeOutsidePods) {
  const auto spec = [](const std::string& path) {
    return *oci::parse_spec(R"({"linux":{"cgroupsPath":")" + path + R"("}})");
  };
  EXPECT_EQ(
      starter_named("/usr/bin/containerd-shim-runc-v2", "/run/containerd/io.containerd.runtime.v2.task/k8s.io/abc"),
      Starter::kubelets_shim);
  EXPECT_TRUE(is_of_pod(spec("/k8s.io/abc"), Starter::kubelets_shim));
  EXPECT_TRUE(is_of_pod(spec("relative/path"), Starter::other));
  EXPECT_TRUE(is_of_pod(spec("/kubepods/burstable/pod1/abc"), Starter::other));
  EXPECT_FALSE(is_of_pod(spec("/docker/abc"), Starter::containerd_shim));
  EXPECT_FALSE(is_of_pod(spec(""), Starter::other));
}

TEST(DeviceRequest, ReadsAnnotationsInAPodWhateverTheStarter) {  // kubelet's allocations decide which of them count
  const std::string json = R"({"annotations":{"cdi.k8s.io/x":"nvidia.com/gpu=3"},
    "linux":{"cgroupsPath":"kubepods-burstable-pod1.slice:crio:abc"}})";
  EXPECT_EQ(request(json, {}, Starter::other).cdi_names, std::vector<std::string>{"nvidia.com/gpu=3"});
}

TEST(DeviceRequest, TrustsOnlyPrivilegedContainersIfTheConfigSaysSo) {
  const std::string plain = with_environment(R"("NVIDIA_VISIBLE_DEVICES=all")");
  const std::string privileged =
      R"({"process":{"env":["NVIDIA_VISIBLE_DEVICES=all"],"capabilities":{"bounding":["CAP_SYS_ADMIN"]}}})";
  EXPECT_FALSE(request(plain, {.environment = Trust::privileged}).asks_nvidia());
  EXPECT_TRUE(request(privileged, {.environment = Trust::privileged}).asks_nvidia());
}

TEST(DeviceRequest, SaysWhichWishesOfTheEnvironmentItIgnores) {
  using Notes = std::vector<std::string>;
  const std::string json = with_environment(R"("NVIDIA_VISIBLE_DEVICES=0","NVIDIA_GDS=enabled")");
  EXPECT_EQ(request(json).ignored, Notes());
  EXPECT_EQ(request(json, {.environment = Trust::never}).ignored,
            Notes{"NVIDIA_VISIBLE_DEVICES=0 has no effect: runtime.environment is 'never'"});
  EXPECT_EQ(
      request(with_environment(R"("NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0")"), {.environment = Trust::privileged})
          .ignored,
      Notes{"NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0 has no effect: runtime.environment is 'privileged', and this "
            "container is not"});
  EXPECT_EQ(request(with_environment(R"("NVIDIA_VISIBLE_DEVICES=void")"), {.environment = Trust::never}).ignored,
            Notes());
}

TEST(DeviceRequest, SaysWhichVariablesBesideTheRequestItIgnores) {
  using Notes = std::vector<std::string>;
  const auto asking = [](const std::string& mount) {
    return request(R"({"process":{"env":["NVIDIA_VISIBLE_DEVICES=all","NVIDIA_MOFED=enabled","NVIDIA_IMEX_CHANNELS=3"]},
      "mounts":[{"source":"/dev/null","destination":"/var/run/nvidia-container-devices/)" +
                       mount + "\"}]}",
                   {.environment = Trust::never});
  };
  EXPECT_EQ(asking("GPU-1").ignored, (Notes{"NVIDIA_MOFED=enabled has no effect: runtime.environment is 'never'",
                                            "NVIDIA_IMEX_CHANNELS=3 has no effect: runtime.environment is 'never'"}));
  const std::string why = " has no effect: devices that are named as CDI devices come with what their specs list";
  EXPECT_EQ(asking("cdi/nvidia.com/gpu/0").ignored,
            (Notes{"NVIDIA_MOFED=enabled" + why, "NVIDIA_IMEX_CHANNELS=3" + why}));
}

TEST(MayAsk, FindsDevicesOfTheConfigsOwnClasses) {
  const std::vector<std::string> prefixes =
      path_prefixes_of({{"mychip", "My chip", {{"/dev/mychip[0-9]*", device::Part::unit, {}}}, {}}});
  EXPECT_EQ(prefixes, std::vector<std::string>{"/dev/mychip"});
  EXPECT_TRUE(may_ask(R"({"path":"/dev/mychip0"})", prefixes));
  EXPECT_FALSE(may_ask(R"({"path":"/dev/mychip0"})"));
}

TEST(MayAsk, FindsEveryKindOfRequestAndNothingElse) {
  for (const char* text : {"NVIDIA_VISIBLE_DEVICES=all", "\"path\":\"/dev/nvidia0\"", "cdi.k8s.io/x", "/dev/dri/card0",
                           R"(\u004eVIDIA_VISIBLE_DEVICES)", R"("\/dev\/nvidia0")", R"(N\u0056IDIA)"}) {
    EXPECT_TRUE(may_ask(text)) << text;
  }
  for (const char* text : {R"({"process":{"args":["sh","-c","a \u003e b \"c\" \n"]}})", "{}", ""}) {
    EXPECT_FALSE(may_ask(text)) << text;
  }
}

}  // namespace
}  // namespace hf::shim
