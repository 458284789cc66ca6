#include "core/container/entitlement/trust.h"

#include <gtest/gtest.h>

#include "core/container/entitlement/entitlement.h"

namespace hf::container {
namespace {

const std::vector<TrustRule> kRules = {{"gpu-operator", "dcgm-*", std::nullopt}, {"mon*", std::nullopt, "exporter"}};

TEST(FindTrust, ComparesNamesThatTheCriWrote) {
  const auto finds = [](Pod pod) { return find_trust(kRules, pod) != nullptr; };
  EXPECT_TRUE(finds({"uid", "dcgm-x7", "gpu-operator", "main", true}));
  EXPECT_TRUE(finds({"uid", "any", "monitoring", "exporter", true}));
  EXPECT_FALSE(finds({"uid", "dcgm-x7", "default", "main", true}));
  EXPECT_FALSE(finds({"uid", "train", "gpu-operator", "main", true}));
  EXPECT_FALSE(finds({"uid", "any", "monitoring", "other", true}));
  EXPECT_FALSE(finds({"uid", "dcgm-x7", "gpu-operator", "main", false}));  // labels may be the image's
  EXPECT_FALSE(finds({"", "dcgm-x7", "gpu-operator", "main", true}));      // no pod by its cgroup
  EXPECT_EQ(find_trust(kRules, std::nullopt), nullptr);
}

TEST(Weigh, ARequestThatTheConfigVouchesForCounts) {
  Claim request;
  request.source = Source::environment;
  request.where = "NVIDIA_VISIBLE_DEVICES=all";
  request.nodes.emplace_back().path = "/dev/nvidia0";
  const std::vector<Claim> refused = weigh({request}, {.in_pod = true, .allocations_known = true, .inside = ""});
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_NE(refused[0].refused, "");
  const std::vector<Claim> trusted =
      weigh({request}, {.in_pod = true, .allocations_known = true, .inside = "", .vouched_by = to_string(kRules[0])});
  ASSERT_EQ(trusted.size(), 1U);
  EXPECT_EQ(trusted[0].refused, "");
  EXPECT_EQ(trusted[0].where,
            "NVIDIA_VISIBLE_DEVICES=all, which trust: {namespace: gpu-operator, pod: dcgm-*} vouches for");
  const std::vector<Claim> nested =
      weigh({request}, {.in_pod = true, .allocations_known = true, .inside = "c1", .vouched_by = "trust"});
  EXPECT_NE(nested[0].refused, "");
}

}  // namespace
}  // namespace hf::container
