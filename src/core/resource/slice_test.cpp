#include "core/resource/slice.h"

#include <gtest/gtest.h>

namespace hf::resource {
namespace {

const Pool kPool{"gpu.holdfast.dev", "node1", "uid-1"};

std::vector<PublishedDevice> devices(std::size_t count) {
  std::vector<PublishedDevice> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back({"gpu-" + std::to_string(i), {{"uuid", std::to_string(i)}}, {}});
  }
  return all;
}

// What the API server has after the steps.
std::vector<FoundSlice> carried_out(const std::vector<SliceStep>& steps, std::vector<FoundSlice> found = {}) {
  for (const SliceStep& step : steps) {
    std::erase_if(found, [&](const FoundSlice& there) { return there.slice.name == step.slice.name; });
    if (step.action != SliceAction::remove) {
      found.push_back({step.slice, kPool.node, kPool.node_uid, "7"});
    }
  }
  return found;
}

TEST(Slices, AreCreatedOnce) {
  const std::vector<SliceStep> steps = plan_slices(kPool, devices(2), {});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].action, SliceAction::create);
  EXPECT_EQ(steps[0].slice, (Slice{"node1-gpu.holdfast.dev-0", 1, 1, devices(2)}));
  EXPECT_EQ(plan_slices(kPool, devices(2), carried_out(steps)), std::vector<SliceStep>());
}

TEST(Slices, AreSplitAtTheLimit) {
  for (const auto& [count, slices] : {std::pair(1U, 1U), {128U, 1U}, {129U, 2U}, {256U, 2U}, {300U, 3U}}) {
    const std::vector<SliceStep> steps = plan_slices(kPool, devices(count), {});
    ASSERT_EQ(steps.size(), slices) << count;
    std::size_t sum = 0;
    for (const SliceStep& step : steps) {
      EXPECT_EQ(step.slice.count, slices);
      EXPECT_LE(step.slice.devices.size(), kDevicesPerSlice);
      sum += step.slice.devices.size();
    }
    EXPECT_EQ(sum, count);
    EXPECT_TRUE(plan_slices(kPool, devices(count), carried_out(steps)).empty());
  }
}

TEST(Slices, AChangeIsANewGenerationOfAllOfThem) {
  const std::vector<FoundSlice> found = carried_out(plan_slices(kPool, devices(129), {}));
  const std::vector<SliceStep> steps = plan_slices(kPool, devices(128), found);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].action, SliceAction::replace);
  EXPECT_EQ(steps[0].resource_version, "7");
  EXPECT_EQ(steps[0].slice.generation, 2U);
  EXPECT_EQ(steps[0].slice.count, 1U);
  EXPECT_EQ(steps[1].action, SliceAction::remove);
  EXPECT_EQ(steps[1].slice.name, "node1-gpu.holdfast.dev-1");
  EXPECT_TRUE(plan_slices(kPool, devices(128), carried_out(steps, found)).empty());
}

TEST(Slices, WithoutADeviceThereIsNone) {
  EXPECT_TRUE(plan_slices(kPool, {}, {}).empty());
  const std::vector<FoundSlice> found = carried_out(plan_slices(kPool, devices(1), {}));
  const std::vector<SliceStep> steps = plan_slices(kPool, {}, found);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].action, SliceAction::remove);
}

// Whatever an administrator, an older version or a broken write left there is put right, with a higher generation.
TEST(Slices, WhatDiffersIsReplaced) {
  const std::vector<FoundSlice> good = carried_out(plan_slices(kPool, devices(2), {}));
  std::vector<FoundSlice> other_owner = good;
  other_owner[0].owner_uid = "an older node of that name";
  std::vector<FoundSlice> unreadable = good;
  unreadable[0].is_readable = false;
  std::vector<FoundSlice> miscounted = good;
  miscounted[0].slice.count = 2;
  std::vector<FoundSlice> surplus = good;
  surplus.push_back({{"generated-x7", 9, 1, {}}, "node1", "uid-1", "1"});
  for (const std::vector<FoundSlice>& found : {other_owner, unreadable, miscounted, surplus}) {
    const std::vector<SliceStep> steps = plan_slices(kPool, devices(2), found);
    ASSERT_FALSE(steps.empty());
    EXPECT_EQ(steps[0].action, SliceAction::replace);
    EXPECT_GT(steps[0].slice.generation, found.back().slice.generation);
    EXPECT_TRUE(plan_slices(kPool, devices(2), carried_out(steps, found)).empty());
  }
}

TEST(Slices, OneOfAnotherPoolIsCreatedAgain) {
  std::vector<FoundSlice> found = carried_out(plan_slices(kPool, devices(2), {}));
  found[0].pool = "elsewhere";
  const std::vector<SliceStep> steps = plan_slices(kPool, devices(2), found);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].action, SliceAction::remove);
  EXPECT_EQ(steps[1].action, SliceAction::create);
  EXPECT_TRUE(plan_slices(kPool, devices(2), carried_out(steps, found)).empty());
}

// A write that ended half way leaves two generations.
TEST(Slices, AMixOfGenerationsIsWrittenAgain) {
  std::vector<FoundSlice> found = carried_out(plan_slices(kPool, devices(129), {}));
  found[1].slice.generation = 5;
  const std::vector<SliceStep> steps = plan_slices(kPool, devices(129), found);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].slice.generation, 6U);
  EXPECT_EQ(steps[1].slice.generation, 6U);
}

TEST(Slices, WithoutTheNodesUidTheOwnerIsLeftAlone) {
  const std::vector<FoundSlice> found = carried_out(plan_slices(kPool, devices(1), {}));
  EXPECT_TRUE(plan_slices({kPool.driver, kPool.node, ""}, devices(1), found).empty());
}

TEST(Slices, NamesFitWhateverTheNodeIsCalled) {
  const Pool pool{"gpu.holdfast.dev", std::string(253, 'a'), ""};
  EXPECT_EQ(plan_slices(pool, devices(1), {})[0].slice.name.size(), 253U);
}

TEST(DriverName, IsADnsName) {
  for (const char* name : {"gpu.holdfast.dev", "gpu.example.com", "x", "a-b.c1"}) {
    EXPECT_TRUE(check_driver_name(name)) << name;
  }
  for (const std::string& name : {std::string(), std::string("GPU.dev"), std::string("a..b"), std::string("-a.b"),
                                  std::string("a/b"), std::string("a_b"), std::string("a."), std::string(64, 'a')}) {
    EXPECT_FALSE(check_driver_name(name)) << name;
  }
}

}  // namespace
}  // namespace hf::resource
