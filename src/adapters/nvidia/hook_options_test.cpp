#include "adapters/nvidia/hook_options.h"

#include <gtest/gtest.h>

namespace hf::nvidia {
namespace {

TEST(HookOptions, AreParsedOrRefused) {
  const Result<HookOptions> options =
      parse_hook_options({"create-container", "--folder", "/usr/lib", "--link", "libcuda.so.1::/usr/lib/libcuda.so",
                          "--cuda-compat", "550.54.15", "--keep-device-files"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->directories, std::vector<std::string>{"/usr/lib"});
  ASSERT_EQ(options->links.size(), 1U);
  EXPECT_EQ(options->links[0].target, "libcuda.so.1");
  EXPECT_EQ(options->links[0].path, "/usr/lib/libcuda.so");
  EXPECT_TRUE(options->keeps_device_files);
  for (const std::vector<std::string>& bad :
       std::vector<std::vector<std::string>>{{},
                                             {"dance"},
                                             {"create-container", "--directory"},
                                             {"create-container", "--directory", "usr/lib"},
                                             {"create-container", "--link", "x"},
                                             {"create-container", "--link", "::x"},
                                             {"create-container", "--no"}}) {
    EXPECT_FALSE(parse_hook_options(bad));
  }
}

TEST(HookOptions, ArePartOfAHookAndReadFromIt) {
  HookOptions options;
  options.directories = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/i386-linux-gnu"};
  options.links = {{"libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so"}};
  options.driver_version = "550.54.15";
  options.keeps_device_files = true;
  options.limits_graphics = true;
  options.spec = "/run/other.json";
  const container::HookEdit hook = hook_of(options, "/opt/holdfast-runtime");
  EXPECT_EQ(hook.path, "/opt/holdfast-runtime");
  EXPECT_EQ(hook.environment, std::vector<std::string>{container::kHookPath});
  EXPECT_EQ(options_of(hook), options);
  EXPECT_EQ(options_of(hook_of(HookOptions(), "/opt/other-name")), HookOptions());
}

TEST(HookOptions, ChangeTheRootOnlyWhereThereIsSomethingToWrite) {
  HookOptions options;
  options.keeps_device_files = true;
  options.driver_version = "550.54.15";
  EXPECT_FALSE(options.changes_root());
  options.limits_graphics = true;
  EXPECT_TRUE(options.changes_root());
  options = {};
  options.links = {{"libcuda.so.1", "/usr/lib/libcuda.so"}};
  EXPECT_TRUE(options.changes_root());
  options = {};
  options.directories = {"/usr/lib"};
  EXPECT_TRUE(options.changes_root());
}

TEST(HookOptions, AreNotReadFromOtherHooks) {
  const container::HookEdit ours = hook_of(HookOptions(), "/usr/bin/holdfast-runtime");
  container::HookEdit other = ours;
  other.stage = container::HookStage::prestart;
  EXPECT_FALSE(options_of(other));
  other = ours;
  other.arguments[0] = "nvidia-cdi-hook";
  EXPECT_FALSE(options_of(other));
  other = ours;
  other.arguments.emplace_back("--of-a-later-version");
  EXPECT_FALSE(options_of(other));
  other.arguments.clear();
  EXPECT_FALSE(options_of(other));
}

}  // namespace
}  // namespace hf::nvidia
