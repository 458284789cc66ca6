#include "adapters/kube/claim_json.h"

#include <gtest/gtest.h>

namespace hf::kube {
namespace {

using resource::PreparedClaim;
using resource::ResourceClaim;

TEST(ClaimJson, IsReadAsTheApiServerSendsIt) {
  const Result<ResourceClaim> claim = parse_claim(R"({
    "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
    "metadata": {"name": "gpus", "namespace": "training", "uid": "1-2-3"},
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.holdfast.dev"}}]}},
    "status": {
      "allocation": {
        "devices": {
          "results": [
            {"request": "gpu", "driver": "gpu.holdfast.dev", "pool": "node1", "device": "gpu-0", "shareID": "s"},
            {"request": "net", "driver": "dra.net", "pool": "p", "device": "eth1", "adminAccess": true}],
          "config": [{"source": "FromClass", "opaque": {"driver": "dra.net", "parameters": {"mtu": 9000}}}]},
        "nodeSelector": {}},
      "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}})");
  ASSERT_TRUE(claim) << claim.error().message;
  EXPECT_EQ(claim->uid, "1-2-3");
  EXPECT_TRUE(claim->is_allocated);
  ASSERT_EQ(claim->results.size(), 2U);
  EXPECT_EQ(claim->results[0].request, "gpu");
  EXPECT_EQ(claim->results[0].device, "gpu-0");
  EXPECT_EQ(claim->results[0].share_id, "s");
  EXPECT_EQ(claim->results[1].driver, "dra.net");
  EXPECT_FALSE(claim->results[0].is_admin);
  EXPECT_TRUE(claim->results[1].is_admin);
  EXPECT_EQ(claim->configured_drivers, std::vector<std::string>{"dra.net"});
  const Result<ResourceClaim> free = parse_claim(R"({"metadata":{"uid":"1"},"status":{}})");
  ASSERT_TRUE(free);
  EXPECT_FALSE(free->is_allocated);
}

TEST(ClaimJson, WhatIsDamagedIsRefusedAndNamed) {
  for (const auto& [text, what] :
       {std::pair("", "ResourceClaim"),
        {"{}", "uid"},
        {R"({"metadata":{"uid":7}})", "uid"},
        {R"({"metadata":{"uid":"1"},"status":{"allocation":{"devices":{"results":[{"request":"a"}]}}}})", "driver"},
        {R"({"metadata":{"uid":"1"},"status":{"allocation":{"devices":{"results":[7]}}}})", "results[0]"}}) {
    const Result<ResourceClaim> claim = parse_claim(text);
    ASSERT_FALSE(claim) << text;
    EXPECT_NE(claim.error().message.find(what), std::string::npos) << claim.error().message;
  }
}

TEST(PreparedClaims, ThereAndBack) {
  const std::vector<PreparedClaim> claims = {
      {{"training", "gpus", "1-2-3"},
       {{"gpu", "node1", "gpu-0", {"nvidia.com/gpu=GPU-0"}},
        {"more", "node1", "gpu-1", {"nvidia.com/gpu=GPU-1"}},
        {"watch", "node1", "gpu-2", {"nvidia.com/gpu=GPU-2"}, true}}},
      {{"default", "other", "4-5-6"}, {{"gpu", "node1", "gpu-2", {"nvidia.com/gpu=GPU-2"}}}}};
  EXPECT_EQ(parse_prepared(render_prepared(claims)).value(), claims);
  EXPECT_TRUE(parse_prepared(render_prepared({})).value().empty());
}

TEST(PreparedClaims, ADamagedFileIsRefusedAsAWhole) {
  const std::string whole =
      render_prepared({{{"training", "gpus", "1-2-3"}, {{"gpu", "node1", "gpu-0", {"nvidia.com/gpu=GPU-0"}}}}});
  for (std::size_t size = 0; size + 2 < whole.size(); ++size) {  // without the newline at its end it is whole
    EXPECT_FALSE(parse_prepared(whole.substr(0, size))) << size;
  }
  for (const char* text : {R"({"version":2,"claims":[]})", R"({"version":1})", R"({"version":1,"claims":[{}]})",
                           R"({"version":1,"claims":[{"namespace":"../x","name":"a","uid":"b","devices":[]}]})"}) {
    EXPECT_FALSE(parse_prepared(text)) << text;
  }
}

}  // namespace
}  // namespace hf::kube
