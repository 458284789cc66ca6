#include "adapters/nvidia/graphics_profile.h"

#include <gtest/gtest.h>

namespace hf::nvidia {
namespace {

TEST(GraphicsProfile, HasABitForEachGpu) {
  const auto has = [](const std::vector<std::string>& nodes, const std::string& mask) {
    return graphics_profile(nodes).find("\"EGLVisibleDGPUDevices\", " + mask + "]") != std::string::npos;
  };
  EXPECT_TRUE(has({"/dev/nvidia0"}, "0x1"));
  EXPECT_TRUE(has({"/dev/nvidia3", "nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"}, "0xa"));
  EXPECT_TRUE(has({"/dev/nvidia63"}, "0x8000000000000000"));
}

TEST(GraphicsProfile, IsEmptyWithoutAGpu) {
  EXPECT_EQ(graphics_profile({}), "");
  EXPECT_EQ(graphics_profile({"/dev/nvidiactl", "/dev/dri/card0", "/dev/nvidia64", "/dev/nvidia0x"}), "");
}

}  // namespace
}  // namespace hf::nvidia
