#include "services/specs/fresh.h"

#include <filesystem>

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <gtest/gtest.h>

#include "kernel/files/file.h"
#include "support/fake_host.h"

namespace hf::specs {
namespace {

class FreshSpecTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!create_node(0)) {
      GTEST_SKIP() << "only root can create nodes";
    }
    config_.cdi = {"/var/run/cdi/chip.json", "chip"};
  }

  [[nodiscard]] bool create_node(unsigned minor) const {
    const std::string path = fake_.root() + "/dev/chip" + std::to_string(minor);
    return ::mknod(path.c_str(), S_IFCHR | 0666, ::makedev(240, minor)) == 0;
  }

  [[nodiscard]] std::string text() const {
    return kernel::read_text(host_.root.get(), "var/run/cdi/chip.json").value_or("");
  }

  test::FakeHost fake_{{{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
                        {"proc/devices", "Character devices:\n240 chip\n\nBlock devices:\n"},
                        {"dev/", ""}}};
  kernel::Host host_ = fake_.open();
  config::Config config_ = *config::parse_config(
      std::string_view("classes:\n  - name: chip\n    units: ['/dev/chip[0-9]*']\n    driver: chip\n"));
};

TEST_F(FreshSpecTest, IsWrittenOnlyAfterTheHostHasChanged) {
  FreshSpec spec(host_);
  const Result<bool> first = spec.refresh(config_);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_TRUE(*first);
  EXPECT_NE(text().find("/dev/chip0"), std::string::npos) << text();
  EXPECT_FALSE(*spec.refresh(config_));
  ASSERT_TRUE(create_node(1));
  EXPECT_TRUE(*spec.refresh(config_));
  EXPECT_NE(text().find("/dev/chip1"), std::string::npos) << text();
  FreshSpec after_a_restart(host_);
  EXPECT_FALSE(*after_a_restart.refresh(config_)) << "it is what it would write";
}

TEST_F(FreshSpecTest, StaysIfTheDevicesAreGoneAndIsNotWrittenWithoutAFileName) {
  FreshSpec spec(host_);
  ASSERT_TRUE(*spec.refresh(config_));
  std::filesystem::remove(fake_.root() + "/dev/chip0");
  EXPECT_FALSE(spec.refresh(config_));
  EXPECT_NE(text(), "");
  config_.cdi.file.clear();
  EXPECT_FALSE(*spec.refresh(config_));
}

}  // namespace
}  // namespace hf::specs
