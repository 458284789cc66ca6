#include "core/resource/offer.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "core/resource/allocation.h"
#include "core/resource/cluster_device.h"

namespace hf::resource {
namespace {

using device::Device;
using device::Inventory;
using device::Kind;
using device::Node;
using device::Part;
using device::Unit;

Node node(const std::string& path, Part part, std::uint32_t major, std::uint32_t minor) {
  Node made;
  made.path = path;
  made.device_class = "nvidia";
  made.part = part;
  made.live = Device{Kind::character, major, minor};
  made.expected = made.live;
  return made;
}

// Two GPUs with everything that they need.
Inventory two_gpus() {
  Inventory inventory;
  for (const std::uint32_t i : {0U, 1U}) {
    const std::string path = "/dev/nvidia" + std::to_string(i);
    inventory.nodes.push_back(node(path, Part::unit, 195, i));
    Unit& unit = inventory.units.emplace_back();
    unit.device_class = "nvidia";
    unit.name = std::to_string(i);
    unit.uuid = "GPU-" + std::to_string(i);
    unit.model = i == 0 ? "NVIDIA A100" : "NVIDIA L4";
    unit.numa = int(i);
    unit.nodes = {path, "/dev/dri/renderD" + std::to_string(128 + i)};
  }
  inventory.nodes.push_back(node("/dev/nvidiactl", Part::control, 195, 255));
  inventory.nodes.push_back(node("/dev/nvidia-uvm", Part::control, 510, 0));
  inventory.nodes.push_back(node("/dev/nvidia-uvm-tools", Part::helper, 510, 1));
  return inventory;
}

Node& find(Inventory& inventory, const std::string& path) {
  return *std::ranges::find(inventory.nodes, path, &Node::path);
}

std::vector<Offer> offers(const Inventory& inventory, const Policy& policy = {}, const DeviceProblems& problems = {}) {
  return offers_of(inventory, device::built_in_classes(), policy, problems);
}

void enable_mig(Unit& unit, const std::string& profile, std::size_t count) {
  unit.mig_enabled = true;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string number = unit.name + std::to_string(i);
    unit.mig.push_back(
        {"MIG-" + number, 1, 0, {"/dev/nvidia-caps/nvidia-cap" + number, "/dev/nvidia-caps/nvidia-cap9"}, profile});
  }
}

TEST(Offer, HasWholeSets) {
  const std::vector<Offer> made = offers(two_gpus());
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0].resource, "nvidia.com/gpu");
  ASSERT_EQ(made[0].devices.size(), 2U);
  const OfferedDevice& first = made[0].devices[0];
  EXPECT_EQ(first.id, "GPU-0");
  EXPECT_EQ(first.numa, 0);
  EXPECT_TRUE(first.is_healthy());
  EXPECT_EQ(first.nodes,
            (std::vector<std::string>{"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"}));
}

TEST(Offer, WithoutANodeOfTheSetADeviceIsNotHealthy) {
  for (const char* path : {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"}) {
    Inventory inventory = two_gpus();
    find(inventory, path).live.reset();
    const std::vector<Offer> made = offers(inventory);
    EXPECT_EQ(made[0].devices[0].problem, std::string(path) + " is missing");
    EXPECT_EQ(made[0].devices[1].is_healthy(), std::string(path) == "/dev/nvidia0") << path;
  }
  Inventory unknown = two_gpus();  // its module is not loaded, so nothing is known of the node
  std::erase_if(unknown.nodes, [](const Node& one) { return one.path.starts_with("/dev/nvidia-uvm"); });
  EXPECT_EQ(offers(unknown)[0].devices[0].problem, "/dev/nvidia-uvm is missing");
}

TEST(Offer, ANodeWithStaleNumbersCountsAsMissing) {
  Inventory inventory = two_gpus();
  find(inventory, "/dev/nvidia-uvm").live = Device{Kind::character, 509, 0};
  const std::optional<std::string> problem = offers(inventory)[0].devices[0].problem;
  ASSERT_TRUE(problem);
  EXPECT_NE(problem->find("the driver has"), std::string::npos) << *problem;
}

TEST(Offer, SaysWhyAUnitMustNotBeUsed) {
  Inventory inventory = two_gpus();
  inventory.units[1].health = device::Health::bad;
  inventory.units[1].health_text = "GPU is lost";
  const std::vector<Offer> made = offers(inventory, {}, {{"GPU-0", "Xid 79"}});
  EXPECT_EQ(made[0].devices[0].problem, "Xid 79");
  EXPECT_EQ(made[0].devices[1].problem, "GPU is lost");
  inventory.units[1].is_excluded = true;
  EXPECT_EQ(offers(inventory)[0].devices.size(), 1U);
}

TEST(Offer, RulesNameResourcesByModel) {
  Policy policy;
  policy.rules = {{"example.com/small", "nvidia", "*L4"}, {"example.com/large", "nvidia", "*A100*"}};
  const std::vector<Offer> made = offers(two_gpus(), policy);
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0].resource, "example.com/large");
  EXPECT_EQ(made[0].devices[0].id, "GPU-0");
  EXPECT_EQ(made[1].devices[0].id, "GPU-1");
}

TEST(Offer, ReplicasOfADeviceShareItsHealth) {
  Policy policy;
  policy.sharing = {{"nvidia.com/gpu", "", 3}};
  policy.renames_shared = true;
  policy.ids = IdKind::index;
  const std::vector<Offer> made = offers(two_gpus(), policy, {{"GPU-1", "Xid 79"}});
  ASSERT_EQ(made[0].devices.size(), 6U);
  EXPECT_EQ(made[0].resource, "nvidia.com/gpu.shared");
  EXPECT_EQ(made[0].devices[2].id, "0::2");
  EXPECT_EQ(std::ranges::count_if(made[0].devices, &OfferedDevice::is_healthy), 3);
}

TEST(Offer, OneReplicaOfADeviceMayBeUnhealthy) {
  Policy policy;
  policy.sharing = {{"nvidia.com/gpu", "", 2}};
  const Inventory inventory = two_gpus();
  const std::set<std::string> keys =
      problem_keys(inventory.units[1], offers(inventory, policy), {}, {"GPU-0::1", "GPU-1::1"});
  EXPECT_EQ(keys, std::set<std::string>{"GPU-1::1"});
  const std::vector<Offer> made = offers(inventory, policy, {{"GPU-1::1", "a gate above refuses"}});
  EXPECT_EQ(made[0].find("GPU-1::1")->problem, "a gate above refuses");
  EXPECT_EQ(std::ranges::count_if(made[0].devices, &OfferedDevice::is_healthy), 3);
}

TEST(Offer, OneMigDeviceOfAClaimMayBeUnhealthy) {
  Inventory inventory = two_gpus();
  enable_mig(inventory.units[0], "1g.5gb", 2);
  for (const char* path :
       {"/dev/nvidia-caps/nvidia-cap00", "/dev/nvidia-caps/nvidia-cap01", "/dev/nvidia-caps/nvidia-cap9"}) {
    inventory.nodes.push_back(node(path, Part::extra, 508, 1));
  }
  const Unit& unit = inventory.units[0];
  const Policy policy = cluster_policy({});
  const std::vector<Offer> by_plugin = offers(inventory);
  const std::set<std::string> keys = problem_keys(unit, by_plugin, offers(inventory, policy), {unit.mig[1].uuid});
  EXPECT_EQ(keys, std::set{unit.mig[1].uuid});
  const std::vector<Offer> made = offers(inventory, policy, {{*keys.begin(), "a gate above refuses"}});
  EXPECT_TRUE(made[1].find(unit.mig[0].uuid)->is_healthy()) << "another pod's";
  EXPECT_FALSE(made[1].find(unit.mig[1].uuid)->is_healthy());
  EXPECT_EQ(problem_keys(unit, by_plugin, offers(inventory, policy), {}), std::set<std::string>{"GPU-0"});
}

TEST(Offer, MigDevicesByStrategy) {
  Inventory inventory = two_gpus();
  enable_mig(inventory.units[0], "1g.5gb+me", 2);
  for (const char* path :
       {"/dev/nvidia-caps/nvidia-cap00", "/dev/nvidia-caps/nvidia-cap01", "/dev/nvidia-caps/nvidia-cap9"}) {
    inventory.nodes.push_back(node(path, Part::extra, 508, 1));
  }
  Policy policy;
  EXPECT_NE(offers(inventory, policy)[0].devices[0].problem, std::nullopt) << "none: a GPU with MIG is no whole GPU";
  policy.mig = MigStrategy::mixed;
  std::vector<Offer> made = offers(inventory, policy);
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[1].resource, "nvidia.com/mig-1g.5gb.me");
  EXPECT_EQ(made[1].devices.size(), 2U);
  EXPECT_EQ(made[1].devices[0].problem, std::nullopt);
  EXPECT_EQ(made[1].devices[0].nodes.size(), 6U);
  policy.mig = MigStrategy::single;
  made = offers(inventory, policy);
  EXPECT_NE(made[0].devices[0].problem->find("only some GPUs"), std::string::npos);
  enable_mig(inventory.units[1], "2g.10gb", 1);
  EXPECT_NE(offers(inventory, policy)[0].devices[0].problem->find("several profiles"), std::string::npos);
}

TEST(Offer, OtherClassesNeedNoLibrary) {
  Inventory inventory;
  inventory.nodes.push_back(node("/dev/fuse", Part::unit, 10, 229));
  Unit& unit = inventory.units.emplace_back();
  unit.device_class = "fuse";
  unit.name = "fuse";
  unit.nodes = {"/dev/fuse"};
  Policy policy;
  policy.rules = {{"example.com/fuse", "fuse"}};
  const std::vector<Offer> made = offers(inventory, policy);
  ASSERT_EQ(made.size(), 1U);
  const Result<Allocation> allocation = allocate(made[0], {"fuse"}, policy);
  ASSERT_TRUE(allocation);
  EXPECT_EQ(allocation->nodes, std::vector<std::string>{"/dev/fuse"});
  EXPECT_EQ(allocation->cdi_devices, std::vector<std::string>{"holdfast.dev/fuse=fuse"});
  EXPECT_TRUE(allocation->environment.empty());
}

TEST(Allocation, IsAllOrNothing) {
  const Offer offer = offers(two_gpus(), {}, {{"GPU-1", "Xid 79"}})[0];
  EXPECT_TRUE(allocate(offer, {"GPU-0"}, {}));
  for (const std::vector<std::string>& ids :
       std::vector<std::vector<std::string>>{{}, {"GPU-2"}, {"GPU-0", "GPU-0"}, {"GPU-0", "GPU-1"}, {"GPU-0", ""}}) {
    EXPECT_FALSE(allocate(offer, ids, {}));
  }
  EXPECT_NE(allocate(offer, {"GPU-1"}, {}).error().message.find("Xid 79"), std::string::npos);
}

TEST(Allocation, GivesSharedNodesOnce) {
  const Offer offer = offers(two_gpus())[0];
  const Result<Allocation> both = allocate(offer, {"GPU-0", "GPU-1"}, {});
  ASSERT_TRUE(both);
  EXPECT_EQ(both->nodes.size(), 5U);
  EXPECT_EQ(both->environment.at("NVIDIA_VISIBLE_DEVICES"), "void") << "an image's own \"all\" must not count";
}

TEST(Allocation, ByEveryWay) {
  const Offer offer = offers(two_gpus())[0];
  Policy policy;
  policy.passes_nodes = false;
  policy.strategies = {DeviceListStrategy::envvar, DeviceListStrategy::cdi_annotations};
  const Result<Allocation> first = allocate(offer, {"GPU-1", "GPU-0"}, policy);
  EXPECT_EQ(first->environment.at("NVIDIA_VISIBLE_DEVICES"), "GPU-1,GPU-0");
  EXPECT_EQ(first->annotations.at("cdi.k8s.io/holdfast_nvidia.com_gpu"), "nvidia.com/gpu=GPU-1,nvidia.com/gpu=GPU-0");
  EXPECT_TRUE(first->nodes.empty());
  EXPECT_TRUE(first->cdi_devices.empty());
  policy.strategies = {DeviceListStrategy::volume_mounts};
  const Result<Allocation> second = allocate(offer, {"GPU-0"}, policy);
  ASSERT_EQ(second->mounts.size(), 1U);
  EXPECT_EQ(second->mounts[0].container_path, "/var/run/nvidia-container-devices/GPU-0");
  EXPECT_EQ(second->mounts[0].host_path, "/dev/null");
}

TEST(Policy, ResourceNames) {
  for (const char* name : {"nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "a/b", "example.com/GPU_large"}) {
    EXPECT_TRUE(check_resource_name(name)) << name;
  }
  for (const char* name : {"", "gpu", "/gpu", "nvidia.com/", "nvidia.com/gpu/0", "Nvidia.com/gpu", "kubernetes.io/gpu",
                           "x.kubernetes.io/gpu", "nvidia.com/-gpu", "nvidia.com/g pu", "requests.nvidia.com/gpu"}) {
    EXPECT_FALSE(check_resource_name(name)) << name;
  }
}

}  // namespace
}  // namespace hf::resource
