#include "adapters/nvidia/request.h"

#include <gtest/gtest.h>

namespace hf::nvidia {
namespace {

using Environment = std::map<std::string, std::string>;
using Strings = std::vector<std::string>;
using Channels = std::vector<std::uint32_t>;

constexpr const char* kUuid = "GPU-11111111-2222-3333-4444-555555555555";

TEST(VisibleDevices, AreParsed) {
  struct Case {
    const char* text;
    bool all;
    bool none;
    Strings ids;
    Strings cdi_names;
  };
  for (const Case& entry : std::vector<Case>{
           {"", false, false, {}, {}},
           {"void", false, false, {}, {}},
           {"Void, ,VOID", false, false, {}, {}},
           {"all", true, false, {}, {}},
           {" ALL ", true, false, {}, {}},
           {"none", false, true, {}, {}},
           {"None,void", false, true, {}, {}},
           {"0,1", false, false, {"0", "1"}, {}},
           {" 0 , 1,,0", false, false, {"0", "1", "0"}, {}},
           {"00,0", false, false, {"00", "0"}, {}},
           {kUuid, false, false, {kUuid}, {}},
           {"MIG-a,0:1,0000:65:00.0", false, false, {"MIG-a", "0:1", "0000:65:00.0"}, {}},
           {"allx,nonesuch,voids", false, false, {"allx", "nonesuch", "voids"}, {}},
           {"nvidia.com/gpu=0", false, false, {}, {"nvidia.com/gpu=0"}},
           {"nvidia.com/gpu=0, nvidia.com/gpu=0", false, false, {}, {"nvidia.com/gpu=0", "nvidia.com/gpu=0"}},
           {"nvidia.com/gpu=all,1,all", true, false, {"1"}, {"nvidia.com/gpu=all"}},
           {"/dev/nvidia0,/x=1,a=b/c,a/b", false, false, {"/dev/nvidia0", "/x=1", "a=b/c", "a/b"}, {}},
           {"none,all,2,vendor.com/thing=1,void", true, true, {"2"}, {"vendor.com/thing=1"}},
       }) {
    const VisibleDevices visible = parse_visible_devices(entry.text);
    EXPECT_EQ(visible, (VisibleDevices{entry.text, entry.all, entry.none, entry.ids, entry.cdi_names})) << entry.text;
    EXPECT_EQ(visible.requests_gpus(), entry.all || entry.none || !entry.ids.empty()) << entry.text;
  }
}

TEST(DriverCapabilities, AreParsed) {
  struct Case {
    const char* text;
    std::set<std::string> names;
  };
  for (const Case& entry : std::vector<Case>{{"", {"utility", "compute"}},
                                             {"all", {"all"}},
                                             {"utility, Compute,,utility", {"utility", "compute"}},
                                             {"bogus", {"bogus"}},
                                             {" , ", {"utility", "compute"}}}) {
    EXPECT_EQ(parse_driver_capabilities(entry.text).names, entry.names) << entry.text;
  }
  EXPECT_TRUE(parse_driver_capabilities("ALL").has("display"));
  EXPECT_FALSE(parse_driver_capabilities("utility").has("compute"));
}

TEST(DeviceMounts, AreCollected) {
  DeviceMounts mounts;
  for (const char* name :
       {"GPU-1", "0, 1", "void", "nvidia.com/gpu=0", "cdi/nvidia.com/gpu/2", "cdi/x", "imex/7", "imex/x", "GPU-1"}) {
    add_mount(mounts, "/dev/null", std::string(kDeviceMounts) + name);
  }
  EXPECT_EQ(mounts.names.size(), 9U);
  EXPECT_EQ(mounts.visible.text, "GPU-1,0, 1,void,nvidia.com/gpu=0,GPU-1");
  EXPECT_EQ(mounts.visible.ids, (Strings{"GPU-1", "0", "1", "nvidia.com/gpu=0", "GPU-1"}))
      << "a CDI name has another form";
  EXPECT_EQ(mounts.visible.cdi_names, (Strings{"nvidia.com/gpu=2", ""}));
  EXPECT_EQ(mounts.imex_channels, Channels{7});
}

TEST(DeviceMounts, AreOnlyThoseOfDevNullBelowTheirDirectory) {
  DeviceMounts mounts;
  add_mount(mounts, "/var/lib/docker/volumes/x", "/var/run/nvidia-container-devices/all");
  add_mount(mounts, "", "/var/run/nvidia-container-devices/all");
  add_mount(mounts, "/dev/null", "/var/run/nvidia-container-devices");
  add_mount(mounts, "/dev/null", "/run/nvidia-container-devices/all");
  EXPECT_TRUE(mounts.names.empty());
  EXPECT_EQ(mounts.visible, VisibleDevices());
}

TEST(Request, IsReadFromTheEnvironment) {
  EXPECT_EQ(request_in({{"NVIDIA_VISIBLE_DEVICES", "0"}, {"CUDA_VERSION", "12"}}).visible.ids, Strings{"0"});
  EXPECT_EQ(request_in({{"NVIDIA_VISIBLE_DEVICES", ""}, {"CUDA_VERSION", "12"}}).visible, VisibleDevices());
  EXPECT_TRUE(request_in(Environment{{"CUDA_VERSION", "8.0"}}).visible.all);
  EXPECT_EQ(request_in({{"CUDA_VERSION", "12"}, {"NVIDIA_REQUIRE_CUDA", "cuda>=12"}}).visible, VisibleDevices());
  EXPECT_EQ(request_in(Environment{}).visible, VisibleDevices());
  EXPECT_EQ(request_in(Environment{{"NVIDIA_IMEX_CHANNELS", "0, 7,x,-1,,../../sda"}}).imex_channels, (Channels{0, 7}));
}

TEST(Request, MayAdministerMigOnlyIfTheContainerIsPrivileged) {
  for (const char* value : {"all", "0", ""}) {
    const Environment environment = {{"NVIDIA_MIG_CONFIG_DEVICES", value}, {"NVIDIA_MIG_MONITOR_DEVICES", value}};
    const bool is_all = std::string(value) == "all";
    EXPECT_EQ(request_in(environment, true).configures_mig, is_all) << value;
    EXPECT_EQ(request_in(environment, true).monitors_mig, is_all) << value;
    EXPECT_FALSE(request_in(environment).configures_mig) << value;
    EXPECT_FALSE(request_in(environment).monitors_mig) << value;
  }
}

TEST(NvidiaHook, IsRecognizedByItsFileName) {
  EXPECT_TRUE(is_nvidia_hook("/usr/bin/nvidia-container-runtime-hook"));
  EXPECT_TRUE(is_nvidia_hook("nvidia-container-toolkit"));
  for (const char* path :
       {"", "/", "/usr/bin/nvidia-container-runtime-hook/", "/usr/bin/nvidia-cdi-hook", "/bin/true"}) {
    EXPECT_FALSE(is_nvidia_hook(path)) << path;
  }
}

}  // namespace
}  // namespace hf::nvidia
