#include "core/cpu/cpu_set.h"

#include <gtest/gtest.h>

namespace hf::cpu {
namespace {

TEST(CpuSet, IsFormattedLikeInTheKernel) {
  for (const char* text : {"", "0", "0-3", "0-3,8", "63-64", "1,3,5", "8191"}) {
    EXPECT_EQ(to_string(*parse_cpu_set(text)), text);
  }
  EXPECT_EQ(to_string(*parse_cpu_set("3,1,2\n")), "1-3");
}

TEST(CpuSet, RefusesMalformedLists) {
  for (const char* text : {"3-1", "1-", "-1", "a", "1,,2", "0-99999999999", "8192"}) {
    EXPECT_FALSE(parse_cpu_set(text)) << text;
  }
}

TEST(CpuSet, OverlapsWhereBothHaveACpu) {
  EXPECT_TRUE(parse_cpu_set("0-3")->overlaps(*parse_cpu_set("3-5")));
  EXPECT_FALSE(parse_cpu_set("0-3")->overlaps(*parse_cpu_set("4,100")));
  EXPECT_FALSE(parse_cpu_set("")->overlaps(*parse_cpu_set("0")));
}

}  // namespace
}  // namespace hf::cpu
