#include "adapters/oci/edit_resources.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace hf::oci {
namespace {

using Json = nlohmann::ordered_json;

TEST(EditResources, AddsRulesForTheNodes) {
  const container::NodeEdit gpu{.path = "/dev/nvidia0",
                                .device = device::Device{device::Kind::character, 195, 0},
                                .access = device::Access::read | device::Access::write};
  const std::string text = R"({"cpu":{"shares":5},"devices":[{"allow":false,"access":"rwm"}]})";
  const Result<std::string> result = allow_in_resources(text, {gpu});
  ASSERT_TRUE(result);
  EXPECT_EQ(Json::parse(*result)["devices"].size(), 2U);
  for (const char* without : {R"({"cpu":{}})", R"({"devices":[]})", R"({"devices":null})", "[]"}) {
    EXPECT_EQ(*allow_in_resources(without, {gpu}), without) << "an update without device rules takes no device away";
  }
  EXPECT_FALSE(allow_in_resources("{", {}));
}

}  // namespace
}  // namespace hf::oci
