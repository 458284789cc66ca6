#include "core/resource/cluster_device.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace hf::resource {
namespace {

using device::Device;
using device::Inventory;
using device::Kind;
using device::Part;
using device::Unit;

void add_node(Inventory& inventory, const std::string& path, Part part, Device numbers) {
  device::Node& node = inventory.nodes.emplace_back();
  node.path = path;
  node.device_class = "nvidia";
  node.part = part;
  node.live = numbers;
  node.expected = numbers;
}

// A whole GPU, one that is cut into two MIG devices, and a network card.
Inventory host() {
  Inventory inventory;
  for (const std::uint32_t i : {0U, 1U}) {
    const std::string path = "/dev/nvidia" + std::to_string(i);
    add_node(inventory, path, Part::unit, {Kind::character, 195, i});
    Unit& unit = inventory.units.emplace_back();
    unit.device_class = "nvidia";
    unit.name = std::to_string(i);
    unit.uuid = "GPU-AB" + std::to_string(i);
    unit.model = "NVIDIA A100";
    unit.pci = "0000:65:00.0";
    unit.bus = "pci0000:60/0000:60:01.0/0000:65:00.0";
    unit.numa = int(i);
    unit.memory_bytes = std::uint64_t(80) << 30U;
    unit.nodes = {path};
  }
  inventory.units[1].mig_enabled = true;
  for (const std::string name : {"1", "2"}) {
    const std::vector<std::string> nodes = {"/dev/nvidia-caps/nvidia-cap" + name, "/dev/nvidia-caps/nvidia-cap9"};
    inventory.units[1].mig.push_back({"MIG-" + name, 1, 0, nodes, "1g.10gb"});
    add_node(inventory, nodes[0], Part::extra, {Kind::character, 236, std::uint32_t(name[0] - '0')});
  }
  add_node(inventory, "/dev/nvidia-caps/nvidia-cap9", Part::extra, {Kind::character, 236, 9});
  add_node(inventory, "/dev/nvidiactl", Part::control, {Kind::character, 195, 255});
  add_node(inventory, "/dev/nvidia-uvm", Part::control, {Kind::character, 510, 0});
  device::DriverState& state = inventory.states.emplace_back();
  state.device_class = "nvidia";
  state.version = "470.82.01";
  state.cuda_version = "12.4";
  return inventory;
}

std::vector<ClusterDevice> devices_of(const Inventory& inventory, Policy policy = {},
                                      const DeviceProblems& problems = {}) {
  const std::vector<Offer> offers = offers_of(inventory, device::built_in_classes(), cluster_policy(policy), problems);
  return cluster_devices(inventory, offers, policy);
}

TEST(ClusterDevice, HasNamesAttributesAndCapacity) {
  const std::vector<ClusterDevice> devices = devices_of(host());
  ASSERT_EQ(devices.size(), 3U);
  const ClusterDevice& gpu = devices[0];
  EXPECT_EQ(gpu.published.name, "gpu-ab0");
  EXPECT_EQ(gpu.cdi_name, "nvidia.com/gpu=GPU-AB0");
  EXPECT_EQ(gpu.problem, std::nullopt);
  const std::map<std::string, Attribute> wanted = {
      {"type", "gpu"},
      {"uuid", "GPU-AB0"},
      {"productName", "NVIDIA A100"},
      {"numaNode", std::int64_t(0)},
      {"resource.kubernetes.io/pcieRoot", "pci0000:60"},
      {"resource.kubernetes.io/pciBusID", "0000:65:00.0"},
      {"driverVersion", SemanticVersion{"470.82.1"}},
      {"cudaDriverVersion", SemanticVersion{"12.4.0"}},
  };
  EXPECT_EQ(gpu.published.attributes, wanted);
  EXPECT_EQ(gpu.published.capacity, (std::map<std::string, std::uint64_t>{{"memory", std::uint64_t(80) << 30U}}));
}

TEST(ClusterDevice, AMigDeviceHasItsProfileAndItsParent) {
  const std::vector<ClusterDevice> devices = devices_of(host());
  ASSERT_EQ(devices.size(), 3U);
  const PublishedDevice& mig = devices[1].published;
  EXPECT_EQ(mig.name, "mig-1");
  EXPECT_EQ(devices[1].cdi_name, "nvidia.com/gpu=MIG-1");
  EXPECT_EQ(mig.attributes.at("type"), Attribute("mig"));
  EXPECT_EQ(mig.attributes.at("profile"), Attribute("1g.10gb"));
  EXPECT_EQ(mig.attributes.at("parentUUID"), Attribute("GPU-AB1"));
  EXPECT_TRUE(mig.capacity.empty()) << "the memory of its GPU is not its own";
}

TEST(ClusterDevice, ReplicasAndIndexesAreForTheDevicePlugin) {
  Policy policy;
  policy.sharing = {{"nvidia.com/gpu", "", 4}};
  policy.ids = IdKind::index;
  EXPECT_EQ(devices_of(host(), policy), devices_of(host()));
}

TEST(ClusterDevice, OnlyHealthyOnesArePublished) {
  Inventory inventory = host();
  std::erase_if(inventory.nodes, [](const device::Node& node) { return node.path == "/dev/nvidia0"; });
  std::vector<ClusterDevice> devices = devices_of(inventory);
  ASSERT_EQ(devices.size(), 3U);
  EXPECT_EQ(devices[0].problem, "/dev/nvidia0 is missing");
  EXPECT_EQ(published_of(devices).size(), 2U);
  devices[1].waits_for = "its spec";
  EXPECT_EQ(published_of(devices).size(), 2U) << "the cluster need not know";
  EXPECT_EQ(published_of(devices_of(host(), {}, {{"GPU-AB1", "Xid 79"}})).size(), 1U);
}

TEST(ClusterDevice, TheStatusNamesThemAndTheirPhysicalDevices) {
  std::vector<ClusterDevice> devices = devices_of(host());
  ASSERT_EQ(devices.size(), 3U);
  devices[0].problem = "/dev/nvidia0 is missing";
  devices[1].problem = "it is in use: pod uid-1";
  devices[1].is_taken = true;
  const Offer offer = offer_of("gpu.holdfast.dev", devices);
  EXPECT_EQ(offer.resource, "gpu.holdfast.dev");
  ASSERT_EQ(offer.devices.size(), 3U);
  EXPECT_EQ(offer.devices[0].id, devices[0].published.name);
  EXPECT_EQ(offer.devices[0].unit, "GPU-AB0");
  EXPECT_EQ(offer.devices[0].problem, "/dev/nvidia0 is missing");
  EXPECT_EQ(offer.devices[1].unit, "GPU-AB1") << "a MIG device is a part of its GPU";
  EXPECT_TRUE(offer.devices[1].is_healthy()) << "a pod has it, which is no problem of the device";
}

TEST(ClusterDevice, NamesOfOtherClassesHaveTheClass) {
  Inventory inventory;
  Unit& card = inventory.units.emplace_back();
  card.device_class = "rdma";
  card.name = "mlx5_0";
  Policy policy;
  policy.rules = {{"example.com/rdma", "rdma"}};
  const std::vector<ClusterDevice> devices = devices_of(inventory, policy);
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].published.name, "rdma-mlx5-0");
  EXPECT_EQ(devices[0].cdi_name, "holdfast.dev/rdma=mlx5_0");
  EXPECT_EQ(devices[0].published.attributes.at("type"), Attribute("rdma"));
}

// The device plugin and DRA offer the same devices: what one of them gave away the other must not give.
TEST(ClusterDevice, WhatTheDevicePluginGaveAwayIsHeldBack) {
  Policy by_index;
  by_index.ids = IdKind::index;
  by_index.mig = MigStrategy::mixed;
  by_index.sharing = {{"nvidia.com/gpu", "", 2}};
  const Inventory inventory = host();
  const std::vector<Offer> plugin = offers_of(inventory, device::built_in_classes(), by_index, {});
  const auto gpu = std::ranges::find(plugin, "nvidia.com/gpu", &Offer::resource);
  ASSERT_NE(gpu, plugin.end());
  std::vector<ClusterDevice> devices = devices_of(inventory);
  ASSERT_EQ(devices.size(), 3U);
  devices[2].problem = "Xid 79";
  hold_taken(devices, {{gpu->devices.front().nodes, "pod uid-1"}, {devices[2].nodes, "pod uid-1"}});
  EXPECT_EQ(devices[0].problem, "it is in use: pod uid-1");
  EXPECT_EQ(devices[1].problem, std::nullopt);
  EXPECT_EQ(devices[2].problem, "Xid 79");
  EXPECT_TRUE(devices[0].is_taken && !devices[1].is_taken && !devices[2].is_taken);
  std::vector<Offer> replicas = plugin;
  hold_taken(replicas, {{devices[0].nodes, "claim training/gpus"}});
  EXPECT_TRUE(std::ranges::none_of(std::ranges::find(replicas, "nvidia.com/gpu", &Offer::resource)->devices,
                                   &OfferedDevice::is_healthy));
}

TEST(SemanticVersion, MakesOneOfWhatDriversWrite) {
  for (const auto& [text, wanted] :
       {std::pair("550.54.15", "550.54.15"), {"470.82.01", "470.82.1"}, {"12.4", "12.4.0"}, {"7", "7.0.0"}}) {
    const std::optional<SemanticVersion> version = semantic_version(text);
    ASSERT_TRUE(version) << text;
    EXPECT_EQ(version->text, wanted);
  }
  for (const char* text : {"", "x", "1.2.3.4", "1..2", "1.2-beta", "-1"}) {
    EXPECT_FALSE(semantic_version(text)) << text;
  }
}

}  // namespace
}  // namespace hf::resource
