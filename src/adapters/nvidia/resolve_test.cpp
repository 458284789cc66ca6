#include "adapters/nvidia/resolve.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace hf::nvidia {
namespace {

using Strings = std::vector<std::string>;

// Three GPUs whose minors are not their indices, the last one in MIG mode.
device::Inventory three_gpus() {
  device::Inventory inventory;
  for (int i = 0; i < 3; ++i) {
    device::Unit unit;
    unit.device_class = "nvidia";
    unit.name = std::to_string(2 - i);
    unit.pci = "0000:6" + std::to_string(i) + ":00.0";
    unit.uuid = "GPU-1111111" + std::to_string(i) + "-0000-0000-0000-000000000000";
    unit.nodes = {"/dev/nvidia" + unit.name, "/dev/dri/card" + unit.name};
    inventory.units.push_back(unit);
  }
  inventory.units[2].mig_enabled = true;
  inventory.units[2].mig = {{"MIG-a", 1, 0, {"/dev/nvidia-caps/nvidia-cap12"}},
                            {"MIG-b", 2, 0, {"/dev/nvidia-caps/nvidia-cap21"}}};
  device::Unit other;
  other.device_class = "rdma";
  other.nodes = {"/dev/infiniband/uverbs0"};
  inventory.units.insert(inventory.units.begin(), other);
  return inventory;
}

Request asking(const char* visible, const char* capabilities = "", const char* imex = "") {
  return request_in({{"NVIDIA_VISIBLE_DEVICES", visible},
                     {"NVIDIA_DRIVER_CAPABILITIES", capabilities},
                     {"NVIDIA_IMEX_CHANNELS", imex}});
}

Strings paths_of(const std::vector<container::WantedNode>& nodes) {
  Strings paths;
  for (const container::WantedNode& node : nodes) {
    paths.push_back(node.path);
  }
  return paths;
}

// The device nodes without those that all GPUs share.
Strings own_nodes(const Resolved& resolved) {
  Strings paths = paths_of(resolved.nodes);
  for (const char* shared : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"}) {
    std::erase(paths, shared);
  }
  return paths;
}

TEST(VisibleDevices, AreResolvedAsNvidiaResolvesThem) {
  struct Case {
    const char* visible;
    Strings nodes;
    Strings unknown;
  };
  const Strings all = {"/dev/nvidia2", "/dev/nvidia1", "/dev/nvidia0"};
  const std::vector<Case> cases = {
      {"", {}, {}},
      {"none", {}, {}},
      {"void", {}, {}},
      {"0", {"/dev/nvidia2"}, {}},
      {"2", {"/dev/nvidia0"}, {}},
      {"0,0", {"/dev/nvidia2"}, {}},
      {"0,", {"/dev/nvidia2"}, {}},
      {" 0 , 1", {"/dev/nvidia2", "/dev/nvidia1"}, {}},
      {"99", {}, {"99"}},
      {"0,99", {"/dev/nvidia2"}, {"99"}},
      {"-1", {}, {"-1"}},
      {"99999999999999999999", {}, {"99999999999999999999"}},
      {"GPU-11111111-0000-0000-0000-000000000000", {"/dev/nvidia1"}, {}},
      {"GPU-11111111-0000-0000-0000-000000000000,1", {"/dev/nvidia1"}, {}},
      {"0000:61:00.0", {"/dev/nvidia1"}, {}},
      {"2:1", {"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap21"}, {}},
      {"MIG-a", {"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap12"}, {}},
      {"2:9", {}, {"2:9"}},
      {"0:0", {}, {"0:0"}},
      {"2:", {}, {"2:"}},
      {":", {}, {":"}},
      {"1:2:3", {}, {"1:2:3"}},
      {"MIG-", {}, {"MIG-"}},
      {"GPU-ffffffff", {}, {"GPU-ffffffff"}},
      {"/dev/nvidia0", {}, {"/dev/nvidia0"}},
      {"nvidia.com/gpu=0", {}, {}},
  };
  for (const Case& entry : cases) {
    const Resolved resolved = resolve(asking(entry.visible), three_gpus());
    EXPECT_EQ(own_nodes(resolved), entry.nodes) << entry.visible;
    EXPECT_EQ(resolved.unknown, entry.unknown) << entry.visible;
  }
  EXPECT_EQ(own_nodes(resolve(asking("0,all"), three_gpus())).size(),
            all.size() + 2);  // and the two MIG devices of one of them
}

TEST(VisibleDevices, ThatNameNoGpuWantNoSharedNodesEither) {
  for (const char* visible : {"", "void", "99"}) {
    EXPECT_TRUE(resolve(asking(visible, "all", "0"), three_gpus()).nodes.empty()) << visible;
  }
}

TEST(VisibleDevices, NeverWantDriNodes) {
  for (const std::string& path : paths_of(resolve(asking("all", "all"), three_gpus()).nodes)) {
    EXPECT_FALSE(path.starts_with("/dev/dri")) << path;
  }
}

TEST(DriverCapabilities, SelectTheSharedNodes) {
  struct Case {
    const char* capabilities;
    bool uvm;
    bool modeset;
  };
  device::Inventory inventory = three_gpus();
  inventory.nodes.emplace_back().path = "/dev/nvidia-modeset";
  for (const Case& entry :
       {Case{"", true, false}, Case{"compute", true, false}, Case{"utility", false, false}, Case{"all", true, true},
        Case{"display", false, true}, Case{"compute,utility", true, false}, Case{"bogus", false, false}}) {
    const Resolved resolved = resolve(asking("0", entry.capabilities), inventory);
    const Strings paths = paths_of(resolved.nodes);
    const auto has = [&paths](const char* path) { return std::ranges::find(paths, path) != paths.end(); };
    EXPECT_TRUE(has("/dev/nvidiactl")) << entry.capabilities;
    EXPECT_EQ(has("/dev/nvidia-uvm"), entry.uvm) << entry.capabilities;
    EXPECT_EQ(has("/dev/nvidia-uvm-tools"), entry.uvm) << entry.capabilities;
    EXPECT_EQ(resolved.not_wanted.empty(), entry.uvm) << entry.capabilities;
    EXPECT_EQ(has("/dev/nvidia-modeset"), entry.modeset) << entry.capabilities;
  }
}

TEST(ImexChannels, ThatAreNotNumbersAreIgnored) {
  const Strings paths = paths_of(resolve(asking("0", "", "0, 7,x,-1,,../../sda"), three_gpus()).nodes);
  EXPECT_EQ(paths.size(), 6U);
  EXPECT_EQ(paths[4], "/dev/nvidia-caps-imex-channels/channel0");
  EXPECT_EQ(paths[5], "/dev/nvidia-caps-imex-channels/channel7");
}

TEST(MigNodes, OfTheDriverAreWantedOnlyTogetherWithAGpu) {
  Request request = asking("0");
  request.configures_mig = true;
  request.monitors_mig = true;
  const Strings paths = paths_of(resolve(request, three_gpus()).nodes);
  EXPECT_EQ(Strings(paths.end() - 2, paths.end()),
            (Strings{"/dev/nvidia-caps/nvidia-cap1", "/dev/nvidia-caps/nvidia-cap2"}));
  request.visible = {};
  EXPECT_TRUE(resolve(request, three_gpus()).nodes.empty());
}

TEST(PluginIds, NameTheNodesOfOneDevice) {
  const device::Inventory inventory = three_gpus();
  EXPECT_EQ(paths_of(nodes_of("GPU-11111110-0000-0000-0000-000000000000::3", inventory)), Strings{"/dev/nvidia2"});
  EXPECT_EQ(paths_of(nodes_of("1", inventory)), Strings{"/dev/nvidia1"});
  EXPECT_EQ(paths_of(nodes_of("MIG-b::0", inventory)), (Strings{"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap21"}));
  for (const char* id : {"", "::", "::3", "all", "none", "GPU-ffffffff-0000-0000-0000-000000000000", "3"}) {
    EXPECT_TRUE(nodes_of(id, inventory).empty()) << id;
  }
}

// libnvidia-container, src/cli/common.c: select_gpu_device compares whole UUIDs, select_all_devices takes MIG too.
TEST(VisibleDevices, AreMatchedByTheWholeUuid) {
  for (const char* prefix : {"GPU-", "GPU-1111111"}) {
    EXPECT_TRUE(resolve(asking(prefix), three_gpus()).nodes.empty()) << prefix;
  }
  EXPECT_EQ(own_nodes(resolve(asking("gpu-11111111-0000-0000-0000-000000000000"), three_gpus())),
            Strings{"/dev/nvidia1"});
}

TEST(VisibleDevices, OfAllIncludeTheMigDevices) {
  EXPECT_EQ(own_nodes(resolve(asking("all"), three_gpus())).size(), 5U);
}

// The indices are those of NVML, which does not count a GPU that the driver refuses to open.
TEST(VisibleDevices, DoNotCountExcludedGpus) {
  device::Inventory inventory = three_gpus();
  inventory.units[1].is_excluded = true;
  EXPECT_EQ(own_nodes(resolve(asking("0"), inventory)), Strings{"/dev/nvidia1"});
}

TEST(DriverCapabilities, MayHaveBlanksBetweenThem) {
  EXPECT_TRUE(resolve(asking("0", "utility, compute"), three_gpus()).not_wanted.empty());
}

}  // namespace
}  // namespace hf::nvidia
