#include "core/resource/resource_claim.h"

#include <gtest/gtest.h>

namespace hf::resource {
namespace {

const Pool kPool{"gpu.holdfast.dev", "node1", "uid-1"};
const ClaimName kName{"training", "gpus", "1-2-3"};

std::vector<ClusterDevice> devices() {
  return {{{"gpu-0", {}, {}}, {}, "nvidia.com/gpu=GPU-0", std::nullopt, std::nullopt},
          {{"gpu-1", {}, {}}, {}, "nvidia.com/gpu=GPU-1", std::nullopt, std::nullopt},
          {{"gpu-2", {}, {}}, {}, "nvidia.com/gpu=GPU-2", "/dev/nvidia-uvm is missing", std::nullopt},
          {{"gpu-3", {}, {}}, {}, "nvidia.com/gpu=GPU-3", std::nullopt, "its CDI spec is being written"}};
}

AllocationResult result(const std::string& device, const std::string& request = "gpu") {
  return {request, kPool.driver, kPool.node, device, std::nullopt};
}

Result<PreparedClaim> prepared(const std::vector<AllocationResult>& results) {
  return prepare(kName, {"1-2-3", true, results, {}}, kPool, devices());
}

TEST(ResourceClaim, GivesTheDevicesOfOurDriver) {
  std::vector<AllocationResult> results = {result("gpu-1"), result("nic", "net"), result("gpu-0", "more/large")};
  results[1].driver = "dra.net";
  results[1].pool = "elsewhere";
  const Result<PreparedClaim> claim = prepared(results);
  ASSERT_TRUE(claim) << claim.error().message;
  const std::vector<PreparedDevice> wanted = {
      {"gpu", "node1", "gpu-1", {"nvidia.com/gpu=GPU-1"}},
      {"more", "node1", "gpu-0", {"nvidia.com/gpu=GPU-0"}},
  };
  EXPECT_EQ(claim->devices, wanted);
  EXPECT_EQ(claim->name, kName);
}

TEST(ResourceClaim, IsPreparedAsAWholeOrNotAtAll) {
  AllocationResult elsewhere = result("gpu-0");
  elsewhere.pool = "node2";
  AllocationResult foreign = result("gpu-0");
  foreign.driver = "gpu.nvidia.com";
  AllocationResult shared = result("gpu-0");
  shared.share_id = "share-1";
  for (const auto& [results, what] :
       {std::pair(std::vector{result("gpu-0"), result("gpu-2")}, "/dev/nvidia-uvm is missing"),
        {std::vector{result("gpu-0"), result("gpu-9")}, "gpu-9"},
        {std::vector{elsewhere}, "node2"},
        {std::vector{shared}, "device 'gpu-0' has a shareID"},
        {std::vector{foreign}, "no device of the driver gpu.holdfast.dev"},
        {std::vector<AllocationResult>(), "no device"}}) {
    const Result<PreparedClaim> claim = prepared(results);
    ASSERT_FALSE(claim) << what;
    EXPECT_NE(claim.error().message.find(what), std::string::npos) << claim.error().message;
    EXPECT_TRUE(claim.error().message.starts_with("claim training/gpus: ")) << claim.error().message;
    EXPECT_NE(claim.error().reason, Reason::not_yet);
  }
  EXPECT_EQ(prepared({result("gpu-0"), result("gpu-3")}).error().reason, Reason::not_yet);
}

TEST(ResourceClaim, MustBeTheOneThatKubeletMeans) {
  const ResourceClaim good{"1-2-3", true, {result("gpu-0")}, {"other.example.com"}};
  EXPECT_TRUE(prepare(kName, good, kPool, devices()));
  ResourceClaim recreated = good;
  recreated.uid = "9-9-9";
  ResourceClaim free = good;
  free.is_allocated = false;
  ResourceClaim configured = good;
  configured.configured_drivers = {kPool.driver};
  for (const ResourceClaim& claim : {recreated, free, configured}) {
    EXPECT_FALSE(prepare(kName, claim, kPool, devices()));
  }
}

TEST(ResourceClaim, OnePreparedBeforeIsCheckedAgain) {
  PreparedClaim claim = *prepared({result("gpu-0")});
  EXPECT_TRUE(check_prepared(claim, devices()));
  std::vector<ClusterDevice> broken = devices();
  broken[0].problem = "Xid 79";
  EXPECT_FALSE(check_prepared(claim, broken));
  EXPECT_FALSE(check_prepared(claim, {}));
  claim.devices[0].cdi_names = {"nvidia.com/gpu=GPU-1"};
  EXPECT_FALSE(check_prepared(claim, devices()));
}

TEST(ResourceClaim, AnAdministratorMayHaveADeviceThatIsInUse) {
  std::vector<ClusterDevice> taken = devices();
  taken[0].problem = "it is in use: the pod uid-1 has it as nvidia.com/gpu";
  taken[0].is_taken = true;
  AllocationResult wanted = result("gpu-0");
  EXPECT_FALSE(prepare(kName, {"1-2-3", true, {wanted}, {}}, kPool, taken));
  wanted.is_admin = true;
  const Result<PreparedClaim> claim = prepare(kName, {"1-2-3", true, {wanted}, {}}, kPool, taken);
  ASSERT_TRUE(claim) << claim.error().message;
  EXPECT_TRUE(claim->devices[0].is_admin);
  EXPECT_TRUE(check_prepared(*claim, taken));
  AllocationResult broken = result("gpu-2");
  broken.is_admin = true;
  EXPECT_FALSE(prepare(kName, {"1-2-3", true, {broken}, {}}, kPool, taken)) << "not a broken one";
}

TEST(ResourceClaim, HasItsDevicesForItself) {
  const PreparedClaim other{{"training", "other", "4-5-6"}, {{"gpu", "node1", "gpu-0", {"nvidia.com/gpu=GPU-0"}}}};
  const PreparedClaim claim = *prepared({result("gpu-1"), result("gpu-0")});
  const Result<void> refused = check_free(claim, {{"4-5-6", other}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("the claim training/other has it"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(check_free(claim, {{"1-2-3", claim}})) << "it is the same claim";
  EXPECT_TRUE(check_free(*prepared({result("gpu-1")}), {{"4-5-6", other}}));
  PreparedClaim changed = claim;
  EXPECT_FALSE(check_free(changed, {{"4-5-6", other}}));
  EXPECT_FALSE(check_free(other, {{"1-2-3", changed}}));
  changed.devices[1].is_admin = true;
  EXPECT_TRUE(check_free(changed, {{"4-5-6", other}}));
  EXPECT_TRUE(check_free(other, {{"1-2-3", changed}}));
}

TEST(ClaimName, BecomesPartOfAUrl) {
  EXPECT_TRUE(check_claim_name(kName));
  EXPECT_TRUE(check_claim_name({"kube-system", "pod-gpu-x7.y", "0b8e7f8e-1d38-4c1c-9c39-2a8a7f0c2d11"}));
  for (const char* bad : {"", "..", "a/b", "a?x=1", "a b", "../secrets", "%2e", "A", "a\n", "a#", ".a", "-a"}) {
    EXPECT_FALSE(check_claim_name({bad, "a", "b"})) << bad;
    EXPECT_FALSE(check_claim_name({"a", bad, "b"})) << bad;
    EXPECT_FALSE(check_claim_name({"a", "b", bad})) << bad;
  }
}

}  // namespace
}  // namespace hf::resource
