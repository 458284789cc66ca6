#include "services/demo/attack.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace hf::demo {
namespace {

TEST(Attack, SaysThatHoldfastItselfWritesWhatAnOldRuncWrites) {
  const Gpu gpu = {.nodes = {{"/dev/nvidia0", device::Device{device::Kind::character, 195, 0}},
                             {"/dev/nvidiactl", device::Device{device::Kind::character, 195, 255}}}};
  const Attack attack = write_as_old_runc("/sys/fs/cgroup/devices/x", gpu);
  EXPECT_EQ(attack.description, "holdfast itself writes what an update by runc 1.0.0-rc93 writes");
  EXPECT_EQ(attack.command.arguments,
            (std::vector<std::string>{std::filesystem::read_symlink("/proc/self/exe"), "demo-attack", "v1",
                                      "/sys/fs/cgroup/devices/x", "c 195:0 rw", "c 195:255 rw"}));
}

}  // namespace
}  // namespace hf::demo
