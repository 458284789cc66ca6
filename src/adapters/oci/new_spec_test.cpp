#include "adapters/oci/new_spec.h"

#include <gtest/gtest.h>

#include "adapters/oci/spec.h"

namespace hf::oci {
namespace {

TEST(NewSpec, IsReadBackByParseSpec) {
  const Result<Spec> spec = parse_spec(render_spec({{"/bin/x", "y"}, {{"/a \"b\"", "/lib/b", false}}, "/demo"}));
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->cgroups_path, "/demo");
  ASSERT_EQ(spec->rules.size(), 1U);
  EXPECT_EQ(spec->rules.front().verb, device::Verb::deny);
  EXPECT_EQ(spec->mounts.back().source, "/a \"b\"");
  EXPECT_TRUE(spec->nodes.empty());
}

}  // namespace
}  // namespace hf::oci
