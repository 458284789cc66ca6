#include "core/container/entitlement/edits.h"

#include <gtest/gtest.h>

namespace hf::container {
namespace {

NodeEdit node(const std::string& path, std::uint32_t minor) {
  return {.path = path, .device = device::Device{device::Kind::character, 195, minor}};
}

TEST(Edits, AreAddedOrReplaceThoseWithTheSameKey) {
  ContainerEdits all{.environment = {"A=1", "B=2"}, .nodes = {node("/dev/nvidia0", 0)}, .gids = {44}};
  append(all, {.environment = {"B=3", "C=4"},
               .nodes = {node("/dev/nvidia0", 7), node("/dev/nvidiactl", 255)},
               .mounts = {{"/a", "/x"}, {"/b", "/x"}},
               .gids = {44, 45}});
  EXPECT_EQ(all.environment, (std::vector<std::string>{"A=1", "B=3", "C=4"}));
  EXPECT_EQ(all.nodes, (std::vector{node("/dev/nvidia0", 7), node("/dev/nvidiactl", 255)}));
  ASSERT_EQ(all.mounts.size(), 1U);
  EXPECT_EQ(all.mounts[0].source, "/b");
  EXPECT_EQ(all.gids, (std::vector<std::uint32_t>{44, 45}));
}

TEST(Edits, EqualHooksAreAddedOnce) {
  const HookEdit hook{HookStage::create_container, "/bin/hook", {"hook"}};
  ContainerEdits all;
  EXPECT_TRUE(all.is_empty());
  append(all, {.hooks = {hook}});
  append(all, {.hooks = {hook}});
  EXPECT_EQ(all.hooks.size(), 1U);
  EXPECT_FALSE(all.is_empty());
}

TEST(Edits, HookStagesHaveTheNamesOfTheOciSpec) {
  for (const HookStage stage : {HookStage::prestart, HookStage::create_runtime, HookStage::create_container,
                                HookStage::start_container, HookStage::poststart, HookStage::poststop}) {
    EXPECT_EQ(parse_hook_stage(to_string(stage)), stage);
  }
  EXPECT_EQ(to_string(HookStage::create_container), "createContainer");
  EXPECT_FALSE(parse_hook_stage("createcontainer"));
}

}  // namespace
}  // namespace hf::container
