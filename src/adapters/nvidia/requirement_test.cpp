#include "adapters/nvidia/requirement.h"

#include <gtest/gtest.h>

namespace hf::nvidia {
namespace {

const HostDeviceFacts kFacts = {{"cuda", "12.4"}, {"driver", "550.54.15"}};

TEST(Requirement, BlanksAreOrAndCommasAreAnd) {
  EXPECT_TRUE(is_met("cuda>=12.4", kFacts));
  EXPECT_TRUE(is_met("cuda>=12", kFacts));
  EXPECT_FALSE(is_met("cuda>=12.5", kFacts));
  EXPECT_FALSE(is_met("cuda>=13.0", kFacts));
  EXPECT_TRUE(is_met("cuda>=13.0 driver>=550,driver<551", kFacts));
  EXPECT_FALSE(is_met("cuda>=13.0 driver>=470,driver<471", kFacts));
  EXPECT_TRUE(is_met("cuda!=12.3", kFacts));
  EXPECT_FALSE(is_met("cuda<12.4", kFacts));
  EXPECT_TRUE(is_met("cuda<=12.4,cuda>12.3,cuda=12.4.0", kFacts));
}

TEST(Requirement, AConditionOnAnUnknownFactCountsAsMet) {
  EXPECT_TRUE(is_met("brand=tesla,driver>=470", kFacts));
  EXPECT_TRUE(is_met("", kFacts));
  EXPECT_TRUE(is_met("  ", kFacts));
  EXPECT_TRUE(is_met("nonsense", kFacts));
  EXPECT_TRUE(is_met("cuda>=", kFacts));
  EXPECT_FALSE(is_met("brand=tesla,driver>=560", kFacts));
}

TEST(Requirement, WhatHasNoEffectIsNamed) {
  EXPECT_TRUE(find_unreadable({{"NVIDIA_REQUIRE_CUDA", "cuda>=12.4 brand=tesla,driver>=470,driver<471"},
                               {"NVIDIA_REQUIRE_JETPACK", "nonsense"},
                               {"OTHER", "nonsense"}})
                  .empty());
  EXPECT_TRUE(find_unreadable({{"NVIDIA_REQUIRE_CUDA", "cuda==12.4"}}).empty());
  EXPECT_TRUE(is_met("cuda=>99", kFacts)) << "it has no effect";
  EXPECT_EQ(find_unreadable({{"NVIDIA_REQUIRE_CUDA", "a,b,c d"}}).size(), 1U);
  for (const char* text : {"nonsense", "cuda>=", "cdua>=12", "cuda>=12,coda<13", "cuda=>12"}) {
    EXPECT_EQ(find_unreadable({{"NVIDIA_REQUIRE_CUDA", text}}).size(), 1U) << text;
  }
}

TEST(Requirement, IsNamedWhereItIsNotMet) {
  EXPECT_EQ(find_unmet({{"NVIDIA_REQUIRE_CUDA", "cuda>=13.0"}}, kFacts), "NVIDIA_REQUIRE_CUDA=cuda>=13.0");
  EXPECT_FALSE(find_unmet({{"NVIDIA_REQUIRE_CUDA", "cuda>=13.0"}, {"NVIDIA_DISABLE_REQUIRE", "1"}}, kFacts));
  EXPECT_TRUE(find_unmet({{"NVIDIA_REQUIRE_CUDA", "cuda>=13.0"}, {"NVIDIA_DISABLE_REQUIRE", "0"}}, kFacts));
  EXPECT_FALSE(find_unmet({{"NVIDIA_REQUIRE_CUDA", "cuda>=9.0"}, {"OTHER", "cuda>=99"}}, kFacts));
}

TEST(Requirement, DriversRunTheCudaOfTheirBranch) {
  EXPECT_EQ(cuda_of_driver("550.54.15"), "12.4");
  EXPECT_EQ(cuda_of_driver("580.159.04"), "13.0");
  EXPECT_EQ(cuda_of_driver("552.1"), "12.4");
  EXPECT_EQ(cuda_of_driver("300.0"), "");
  EXPECT_EQ(cuda_of_driver(""), "");
}

}  // namespace
}  // namespace hf::nvidia
