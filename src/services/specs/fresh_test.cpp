#include "services/specs/fresh.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <tuple>

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

// One GPU that can be cut into parts, and a fake of NVML, which says whether MIG is enabled.
class FreshMigTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto& [name, major, minor] :
         {std::tuple("nvidia0", 195U, 0U), {"nvidiactl", 195U, 255U}, {"nvidia-uvm", 238U, 0U}}) {
      if (::mknod((fake_.root() + "/dev/" + name).c_str(), S_IFCHR | 0666, ::makedev(major, minor)) != 0) {
        GTEST_SKIP() << "only root can create nodes";
      }
    }
    config_.cdi = {"/var/run/cdi/nvidia.json", "nvidia"};
  }
  ~FreshMigTest() override {
    for (const char* name : {"HOLDFAST_FAKE_MIG", "HOLDFAST_FAKE_MIG_EMPTY", "HOLDFAST_FAKE_NVML_ERROR"}) {
      ::unsetenv(name);
    }
  }

  test::FakeHost fake_{{{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
                        {"proc/devices", "Character devices:\n195 nvidia\n238 nvidia-uvm\n\nBlock devices:\n"},
                        {"proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module  580.159.04\n"},
                        {"proc/driver/nvidia/gpus/0000:ca:00.0/information",
                         "Model: NVIDIA H200\nGPU UUID: GPU-11111111-0000-0000-0000-000000000001\nDevice Minor: 0\n"},
                        {"proc/driver/nvidia/capabilities/gpu0/mig/", ""},
                        {"usr/lib64/libcuda.so.580.159.04",
                         "\x7f"
                         "ELF\x02"},
                        {"dev/", ""}}};
  kernel::Host host_ = fake_.open();
  config::Config config_ = *config::parse_config(std::string_view());
};

TEST_F(FreshMigTest, NoticesAfterAWhileThatMigWasEnabled) {
  FreshSpec spec(host_);
  const auto start = std::chrono::steady_clock::now();
  const Result<bool> first = spec.refresh(config_, start);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_TRUE(*first);
  EXPECT_FALSE(spec.refresh(config_, start + std::chrono::minutes(5)).value_or(true)) << "nothing has changed";
  ::setenv("HOLDFAST_FAKE_MIG", "0", 1);
  ::setenv("HOLDFAST_FAKE_MIG_EMPTY", "1", 1);
  EXPECT_FALSE(spec.refresh(config_, start + std::chrono::minutes(9)).value_or(true)) << "it is not asked yet";
  const Result<bool> last = spec.refresh(config_, start + std::chrono::minutes(10));
  ASSERT_FALSE(last);
  EXPECT_NE(last.error().message.find("MIG is enabled"), std::string::npos) << last.error().message;
  EXPECT_TRUE(spec.problem());
  ::setenv("HOLDFAST_FAKE_NVML_ERROR", "999", 1);
  EXPECT_FALSE(spec.refresh(config_, start + std::chrono::minutes(15)).value_or(true));
  EXPECT_TRUE(spec.problem()) << "a library that does not answer does not say that MIG is disabled";
}

// Asking would wake it every few minutes, for ever.
TEST_F(FreshMigTest, AsksNoSleepingGpu) {
  const std::string power = fake_.root() + "/sys/bus/pci/devices/0000:ca:00.0/power";
  std::filesystem::create_directories(power);
  FreshSpec spec(host_);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(spec.refresh(config_, start).value_or(false));
  ::setenv("HOLDFAST_FAKE_MIG", "0", 1);
  ::setenv("HOLDFAST_FAKE_MIG_EMPTY", "1", 1);
  std::ofstream(power + "/runtime_status") << "suspended\n";
  EXPECT_FALSE(spec.refresh(config_, start + std::chrono::minutes(5)).value_or(true));
  std::ofstream(power + "/runtime_status") << "active\n";
  const Result<bool> awake = spec.refresh(config_, start + std::chrono::minutes(6));
  ASSERT_FALSE(awake);
  EXPECT_NE(awake.error().message.find("MIG is enabled"), std::string::npos) << awake.error().message;
}

TEST_F(FreshMigTest, WakesASleepingGpuForTheNamesOfItsPartsOnly) {
  const std::string power = fake_.root() + "/sys/bus/pci/devices/0000:ca:00.0/power";
  std::filesystem::create_directories(power);
  std::ofstream(power + "/runtime_status") << "suspended\n";
  ::setenv("HOLDFAST_FAKE_MIG", "0", 1);
  ::setenv("HOLDFAST_FAKE_MIG_EMPTY", "1", 1);
  FreshSpec spec(host_);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(spec.refresh(config_, start).value_or(false))
      << "NVML, which would say that MIG is enabled, is not asked";
  std::filesystem::create_directories(fake_.root() + "/proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0");
  const Result<bool> cut = spec.refresh(config_, start + std::chrono::seconds(10));
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find("MIG is enabled"), std::string::npos) << cut.error().message;
}

}  // namespace
}  // namespace hf::specs
