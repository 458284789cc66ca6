#include "adapters/oci/oci_config.h"

#include <gtest/gtest.h>

namespace hf::oci {
namespace {

TEST(OciDeviceRules, AreReadFromAListOrAConfig) {
  const char* list =
      R"([{"allow":false,"access":"rwm"},{"allow":true,"type":"c","major":195,"minor":0,"access":"rw"}])";
  const std::string config = std::string(R"({"ociVersion":"1.0","linux":{"resources":{"devices":)") + list + "}}}";
  const device::OciRules rules = *parse_device_rules(list);
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0], (device::OciRule{device::Verb::deny, *device::parse_rule("a")}));
  EXPECT_EQ(rules[1], (device::OciRule{device::Verb::allow, *device::parse_rule("c 195:0 rw")}));
  EXPECT_EQ(*parse_device_rules(config), rules);
}

TEST(OciDeviceRules, AcceptOlderSpellingsOfAny) {
  EXPECT_EQ(parse_device_rules(R"([{"allow":true,"type":"c","major":195,"minor":-1,"access":"rw"}])")->front().rule,
            *device::parse_rule("c 195:* rw"));
  EXPECT_EQ(parse_device_rules(R"([{"allow":true,"type":"c","major":null}])")->front().rule,
            *device::parse_rule("c *:* rwm"));
}

TEST(OciDeviceRules, ThatAreMalformedAreAnError) {
  for (const char* json :
       {"", "{", "{}", "[1]", R"([{"type":"c"}])", R"([{"allow":1}])", R"([{"allow":true,"type":"x"}])",
        R"([{"allow":true,"major":"195"}])", R"([{"allow":true,"major":-2}])", R"([{"allow":true,"major":5000}])",
        R"([{"allow":true,"major":1.5}])", R"([{"allow":true,"access":"rx"}])", R"([{"allow":true,"access":""}])",
        R"({"linux":{"resources":{"devices":{}}}})", R"([{"allow":true,"minor":99999999999999999999}])",
        R"([{"allow":true,"major":18446744073709551615}])"}) {
    const Result<device::OciRules> rules = parse_device_rules(json);
    ASSERT_FALSE(rules) << json;
    EXPECT_NE(rules.error().message.find("parse OCI device rule"), std::string::npos);
  }
}

}  // namespace
}  // namespace hf::oci
