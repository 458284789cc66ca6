#include "core/container/cgroup/cgroup_path.h"

#include <gtest/gtest.h>

namespace hf::container {
namespace {

TEST(CgroupPath, IsWithinItselfAndItsAncestorsByWholeComponents) {
  EXPECT_TRUE(is_within("/a/b", "/"));
  EXPECT_TRUE(is_within("/a/b", "/a"));
  EXPECT_TRUE(is_within("/a/b", "/a/b"));
  EXPECT_FALSE(is_within("/a/b", "/a/b/c"));
  EXPECT_FALSE(is_within("/a/bc", "/a/b")) << "a name that only begins alike";
  EXPECT_FALSE(is_within("/x/a/b", "/a/b")) << "a path that only ends alike";
}

TEST(CgroupPath, HasADepthOfOnePerComponent) {
  EXPECT_EQ(depth_of({"/"}), 0U);
  EXPECT_EQ(depth_of({"/a"}), 1U);
  EXPECT_EQ(depth_of({"/a/b"}), 2U);
}

}  // namespace
}  // namespace hf::container
