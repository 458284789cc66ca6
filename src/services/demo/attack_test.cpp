#include "services/demo/attack.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "kernel/files/file.h"
#include "support/fake_host.h"

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

TEST(Attack, TakesADeviceAwayByTheListOfV1) {
  const test::FakeHost host(test::Files{{"x/devices.deny", ""}});
  const Result<void> done = carry_out_attack({"v1", host.root() + "/x", "c 195:0 rw"});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(*kernel::read_regular_file(host.root() + "/x/devices.deny"), "c 195:0 rw");
  EXPECT_FALSE(carry_out_attack({"v1", host.root() + "/absent", "c 195:0 rw"}));
}

TEST(Attack, RefusesOtherArguments) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {}, {"v1"}, {"v1", "/x"}, {"replace", "/x"}, {"beside", "/x", "1", "2"}, {"v2", "/x", "1"}}) {
    const Result<void> done = carry_out_attack(arguments);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, std::errc::invalid_argument);
  }
}

}  // namespace
}  // namespace hf::demo
