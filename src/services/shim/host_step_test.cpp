#include "services/shim/host_step.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "support/fake_host.h"

namespace hf::shim {
namespace {

class CarryOutTest : public testing::Test {
 protected:
  [[nodiscard]] std::string target_of(const std::string& link) const {
    return std::filesystem::read_symlink(fake_.root() + link).string();
  }

  test::FakeHost fake_{{{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
                        {"dev/file", ""},
                        {"dev/nvidia0", ""}}};
  kernel::Host host_ = fake_.open();
};

TEST_F(CarryOutTest, CreatesASymlinkUnlessThePathResolvesAlready) {
  const std::vector<HostStep> first = {{CreateSymlink{"/dev/char/195:0", "../nvidia0"}}};
  const std::vector<HostStep> second = {{CreateSymlink{"/dev/char/195:0", "../file"}}};
  ASSERT_TRUE(carry_out(host_, first));
  EXPECT_EQ(target_of("/dev/char/195:0"), "../nvidia0");
  ASSERT_TRUE(carry_out(host_, second));
  EXPECT_EQ(target_of("/dev/char/195:0"), "../nvidia0");
  std::filesystem::remove(fake_.root() + "/dev/nvidia0");
  ASSERT_TRUE(carry_out(host_, second));
  EXPECT_EQ(target_of("/dev/char/195:0"), "../file") << "the old target was gone";
}

TEST_F(CarryOutTest, EndsAtTheFirstStepThatMustNotFail) {
  const CreateSymlink impossible{"/dev/file/195:0", "../nvidia0"};
  const HostStep possible{CreateSymlink{"/dev/char/195:0", "../nvidia0"}};
  EXPECT_FALSE(carry_out(host_, {{impossible}, possible}));
  EXPECT_FALSE(std::filesystem::exists(fake_.root() + "/dev/char"));
  EXPECT_TRUE(carry_out(host_, {{impossible, true}, possible}));
  EXPECT_EQ(target_of("/dev/char/195:0"), "../nvidia0");
}

TEST_F(CarryOutTest, NeverReplacesAFileByANode) {
  const HostStep node{CreateNode{"/dev/nvidia0", {device::Kind::character, 195, 0}, {}}};
  const Result<void> done = carry_out(host_, {node});
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("/dev/nvidia0"), std::string::npos) << done.error().message;
  EXPECT_TRUE(std::filesystem::is_regular_file(fake_.root() + "/dev/nvidia0"));
}

}  // namespace
}  // namespace hf::shim
