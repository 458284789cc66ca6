#include "services/shim/driver.h"

#include <gtest/gtest.h>

namespace hf::shim {
namespace {

enum class Asks : std::uint8_t { nothing, outside_pods, in_pod, in_pod_allocated };
enum class Has : std::uint8_t { no_gpu, gpu, gpu_and_uvm_without_numbers, gpu_and_uvm };

Facts facts_of(Asks asks, Has has) {
  Facts facts;
  facts.request.nvidia_description = asks == Asks::nothing ? "" : "NVIDIA_VISIBLE_DEVICES=all";
  if (asks == Asks::in_pod || asks == Asks::in_pod_allocated) {
    facts.pod.emplace();
    facts.pod->uid = "uid";
    facts.pod->container = "main";
    const char* owner = asks == Asks::in_pod_allocated ? "main" : "other";
    facts.sources.checkpoint.emplace().allocations = {{"uid", owner, "nvidia.com/gpu", {"GPU-1::0"}, {}, {}, {}}};
  }
  if (has != Has::no_gpu) {
    facts.inventory.units.emplace_back().device_class = "nvidia";
  }
  if (has == Has::gpu_and_uvm || has == Has::gpu_and_uvm_without_numbers) {
    device::Node& uvm = facts.inventory.nodes.emplace_back();
    uvm.path = "/dev/nvidia-uvm";
    if (has == Has::gpu_and_uvm) {
      uvm.expected = device::Device{device::Kind::character, 511, 0};
    }
  }
  return facts;
}

TEST(DriverToLoad, IsTheNextMissingModuleOfATrustedRequest) {
  struct Case {
    Asks asks;
    Has has;
    std::optional<std::string> module;
  };
  for (const Case& entry : std::vector<Case>{
           {Asks::nothing, Has::no_gpu, std::nullopt},
           {Asks::nothing, Has::gpu, std::nullopt},
           {Asks::outside_pods, Has::no_gpu, "nvidia"},
           {Asks::outside_pods, Has::gpu, "nvidia-uvm"},
           {Asks::outside_pods, Has::gpu_and_uvm_without_numbers, "nvidia-uvm"},
           {Asks::outside_pods, Has::gpu_and_uvm, std::nullopt},
           {Asks::in_pod, Has::no_gpu, std::nullopt},
           {Asks::in_pod, Has::gpu, std::nullopt},
           {Asks::in_pod_allocated, Has::no_gpu, "nvidia"},
           {Asks::in_pod_allocated, Has::gpu, "nvidia-uvm"},
           {Asks::in_pod_allocated, Has::gpu_and_uvm, std::nullopt},
       }) {
    const Facts facts = facts_of(entry.asks, entry.has);
    EXPECT_EQ(driver_to_load(facts, {}), entry.module) << int(entry.asks) << " " << int(entry.has);
    EXPECT_EQ(driver_to_load(facts, {.creates_nodes = false}), std::nullopt);
  }
}

TEST(Facts, TrustOnlyWhatIsAllocatedToThisContainer) {
  Facts facts = facts_of(Asks::in_pod_allocated, Has::gpu);
  EXPECT_TRUE(facts.is_any_gpu_allocated());
  EXPECT_TRUE(facts.is_gpu_allocated("GPU-1")) << "as a replica";
  EXPECT_FALSE(facts.is_gpu_allocated("GPU-2"));
  kube::Allocation& allocation = facts.sources.checkpoint->allocations.front();
  allocation.cdi_devices = {"nvidia.com/gpu=1"};
  facts.sources.prepared = {{"claim", {"uid"}, {"vendor.com/x=1"}}, {"other", {"another"}, {"vendor.com/x=2"}}};
  EXPECT_TRUE(facts.is_cdi_name_allocated("nvidia.com/gpu=1"));
  EXPECT_TRUE(facts.is_cdi_name_allocated("vendor.com/x=1"));
  EXPECT_FALSE(facts.is_cdi_name_allocated("vendor.com/x=2"));
  allocation.resource = "vendor.com/gpu";
  EXPECT_FALSE(facts.is_any_gpu_allocated());
  allocation.resource = "nvidia.com/gpu";
  facts.pod->container = "";
  EXPECT_FALSE(facts.trusts_nvidia()) << "its name is unknown";
  facts.pod->uid = "";
  EXPECT_FALSE(facts.is_cdi_name_allocated("vendor.com/x=1"));
}

}  // namespace
}  // namespace hf::shim
