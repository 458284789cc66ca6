#include "core/resource/features.h"

#include <gtest/gtest.h>

namespace hf::resource {
namespace {

using device::Inventory;
using device::Unit;

constexpr std::uint64_t kGiB = std::uint64_t(1) << 30U;

Unit gpu(const std::string& name, const std::string& model) {
  Unit unit;
  unit.device_class = "nvidia";
  unit.name = name;
  unit.model = model;
  return unit;
}

// A host whose NVML answered.
Inventory hopper(std::size_t count) {
  Inventory inventory;
  for (std::size_t i = 0; i < count; ++i) {
    Unit unit = gpu(std::to_string(i), "NVIDIA H200");
    unit.memory_bytes = 141 * kGiB;
    unit.compute_capability = "9.0";
    unit.is_mig_capable = true;
    inventory.units.push_back(unit);
  }
  inventory.states.emplace_back().device_class = "nvidia";
  inventory.states[0].version = "550.54.15";
  inventory.states[0].cuda_version = "12.4";
  return inventory;
}

void cut(Unit& unit, const std::vector<std::string>& profiles) {
  unit.mig_enabled = true;
  for (const std::string& profile : profiles) {
    unit.mig.push_back({"MIG-" + profile, 1, 0, {}, profile});
  }
}

TEST(Features, AreTheLabelsOfNvidiasFeatureDiscovery) {
  EXPECT_EQ(render_features(labels_of(hopper(8), {})), R"(nvidia.com/cuda.driver-version.full=550.54.15
nvidia.com/cuda.driver-version.major=550
nvidia.com/cuda.driver-version.minor=54
nvidia.com/cuda.driver-version.revision=15
nvidia.com/cuda.driver.major=550
nvidia.com/cuda.driver.minor=54
nvidia.com/cuda.driver.rev=15
nvidia.com/cuda.runtime-version.full=12.4
nvidia.com/cuda.runtime-version.major=12
nvidia.com/cuda.runtime-version.minor=4
nvidia.com/cuda.runtime.major=12
nvidia.com/cuda.runtime.minor=4
nvidia.com/gpu.compute.major=9
nvidia.com/gpu.compute.minor=0
nvidia.com/gpu.count=8
nvidia.com/gpu.family=hopper
nvidia.com/gpu.memory=144384
nvidia.com/gpu.product=NVIDIA-H200
nvidia.com/gpu.replicas=1
nvidia.com/mig.capable=true
nvidia.com/mps.capable=false
)");
}

TEST(Features, AreEmptyOnAHostWithoutGpus) {
  EXPECT_TRUE(labels_of({}, {}).empty());
  Inventory inventory;
  inventory.units.push_back(gpu("renderD128", "Radeon"));
  inventory.units[0].device_class = "amd";
  inventory.units.push_back(gpu("0", "NVIDIA A100"));
  inventory.units[1].is_excluded = true;
  EXPECT_TRUE(labels_of(inventory, {}).empty());
}

TEST(Features, LeaveOutWhatOnlyNvmlKnows) {
  Inventory inventory;
  inventory.units.push_back(gpu("0", "NVIDIA A100-SXM4-40GB"));
  inventory.states.emplace_back().device_class = "nvidia";
  inventory.states[0].version = "535.104";
  const Labels labels = labels_of(inventory, {});
  EXPECT_EQ(labels.at("nvidia.com/gpu.product"), "NVIDIA-A100-SXM4-40GB");
  EXPECT_EQ(labels.at("nvidia.com/cuda.driver.minor"), "104");
  for (const char* name : {"gpu.memory", "gpu.family", "mig.capable", "cuda.runtime.major", "cuda.driver.rev"}) {
    EXPECT_FALSE(labels.contains(std::string("nvidia.com/") + name)) << name;
  }
}

TEST(Features, DescribeTheModelThatTheHostHasMostOf) {
  Inventory inventory = hopper(2);
  inventory.units.insert(inventory.units.begin(), gpu("2", "Tesla T4"));
  const Labels labels = labels_of(inventory, {});
  EXPECT_EQ(labels.at("nvidia.com/gpu.product"), "NVIDIA-H200");
  EXPECT_EQ(labels.at("nvidia.com/gpu.count"), "2");
}

TEST(Features, MakeEveryModelAValueThatKubernetesTakes) {
  for (const auto& [model, value] : {std::pair("NVIDIA RTX PRO 6000 (Server)", "NVIDIA-RTX-PRO-6000--Server"),
                                     {" GeForce_GT.710\n", "GeForce_GT.710"},
                                     {"///", ""}}) {
    Inventory inventory;
    inventory.units.push_back(gpu("0", model));
    EXPECT_EQ(labels_of(inventory, {}).at("nvidia.com/gpu.product"), value);
  }
  Inventory inventory;
  inventory.units.push_back(gpu("0", std::string(62, 'x') + " y"));
  EXPECT_EQ(labels_of(inventory, {}).at("nvidia.com/gpu.product"), std::string(62, 'x'));
}

TEST(Features, NameTheFamilyByTheComputeCapability) {
  for (const auto& [compute, family] : {std::pair("7.0", "volta"),
                                        {"7.5", "turing"},
                                        {"8.0", "ampere"},
                                        {"8.9", "ada-lovelace"},
                                        {"9.0", "hopper"},
                                        {"10.0", "blackwell"},
                                        {"99.0", "undefined"}}) {
    Inventory inventory = hopper(1);
    inventory.units[0].compute_capability = compute;
    EXPECT_EQ(labels_of(inventory, {}).at("nvidia.com/gpu.family"), family) << compute;
  }
}

TEST(Features, SayThatGpusAreShared) {
  Policy policy;
  policy.sharing = {{"nvidia.com/gpu", "", 4}};
  Labels labels = labels_of(hopper(1), policy);
  EXPECT_EQ(labels.at("nvidia.com/gpu.product"), "NVIDIA-H200-SHARED");
  EXPECT_EQ(labels.at("nvidia.com/gpu.replicas"), "4");
  policy.sharing[0].rename = "nvidia.com/gpu.shared";
  labels = labels_of(hopper(1), policy);
  EXPECT_EQ(labels.at("nvidia.com/gpu.product"), "NVIDIA-H200");
  EXPECT_EQ(labels.at("nvidia.com/gpu.replicas"), "4");
}

TEST(Features, CountMigDevicesOfOneProfileAsGpus) {
  Policy policy;
  policy.mig = MigStrategy::single;
  Inventory inventory = hopper(2);
  EXPECT_EQ(labels_of(inventory, policy).at("nvidia.com/gpu.count"), "2");  // none is cut
  cut(inventory.units[0], {"1g.18gb", "1g.18gb"});
  EXPECT_EQ(labels_of(inventory, policy).at("nvidia.com/gpu.product"), "NVIDIA-H200-MIG-INVALID");
  EXPECT_EQ(labels_of(inventory, policy).at("nvidia.com/gpu.count"), "0");
  cut(inventory.units[1], {"1g.18gb"});
  const Labels labels = labels_of(inventory, policy);
  EXPECT_EQ(labels.at("nvidia.com/gpu.product"), "NVIDIA-H200-MIG-1g.18gb");
  EXPECT_EQ(labels.at("nvidia.com/gpu.count"), "3");
  EXPECT_EQ(labels.at("nvidia.com/mig.strategy"), "single");
  EXPECT_FALSE(labels.contains("nvidia.com/gpu.memory"));
}

TEST(Features, CountMigDevicesByProfile) {
  Policy policy;
  policy.mig = MigStrategy::mixed;
  Inventory inventory = hopper(2);
  cut(inventory.units[0], {"1g.18gb", "1g.18gb", "1g.18gb+me"});
  const Labels labels = labels_of(inventory, policy);
  EXPECT_EQ(labels.at("nvidia.com/gpu.count"), "2");
  EXPECT_EQ(labels.at("nvidia.com/mig-1g.18gb.count"), "2");
  EXPECT_EQ(labels.at("nvidia.com/mig-1g.18gb.me.count"), "1");
  EXPECT_EQ(labels.at("nvidia.com/mig-1g.18gb.me.product"), "NVIDIA-H200-MIG-1g.18gb-me");
}

}  // namespace
}  // namespace hf::resource
