#include "services/demo/guard_process.h"

#include <gtest/gtest.h>

#include "adapters/config/config.h"

namespace hf::demo {
namespace {

TEST(GuardConfig, HealsTheNamedContainersAndObservesAllOthers) {
  const Result<config::Config> config = config::parse_config(guard_config({"hf-demo-1", "hf-demo-2"}));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->policy.mode, container::Mode::observe);
  ASSERT_EQ(config->policy.rules.size(), 2U);
  EXPECT_EQ(config->policy.rules[1].match.container, "hf-demo-2");
  EXPECT_EQ(config->policy.rules[1].mode, container::Mode::heal);
}

}  // namespace
}  // namespace hf::demo
