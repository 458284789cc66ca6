#include "services/shim/hook.h"

#include <filesystem>
#include <fstream>

#include <fcntl.h>

#include <gtest/gtest.h>

#include "kernel/files/container_fs.h"
#include "kernel/files/file.h"
#include "support/fake_host.h"

namespace hf::shim {
namespace {

namespace fs = std::filesystem;

class HookTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root());
    root_ = *kernel::open_directory(AT_FDCWD, root());
  }
  [[nodiscard]] std::string root() const { return directory_.root() + "/root"; }
  void write(const std::string& path) const {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << "text";
  }

  test::FakeHost directory_{{{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}}};
  kernel::Fd root_;
};

TEST_F(HookTest, CreatesLinksInsideTheRootDespiteSymlinksOfTheImage) {
  fs::create_directories(directory_.root() + "/outside");
  fs::create_directories(root() + "/usr");
  fs::create_symlink(directory_.root() + "/outside", root() + "/usr/lib");
  fs::create_symlink("../../../../../../..", root() + "/up");
  ASSERT_TRUE(kernel::make_symlink_inside(root_.get(), "/up/made/libcuda.so", "libcuda.so.1"));
  EXPECT_TRUE(fs::is_symlink(root() + "/made/libcuda.so"));
  (void)kernel::make_symlink_inside(root_.get(), "/usr/lib/libcuda.so", "libcuda.so.1");
  EXPECT_TRUE(fs::is_empty(directory_.root() + "/outside")) << "nothing was created outside";
  EXPECT_FALSE(kernel::make_symlink_inside(root_.get(), "/a/../../b/x", "y"));
}

TEST_F(HookTest, ReplacesALinkWithAnotherTargetButNoRegularFile) {
  write(root() + "/lib/real.so");
  fs::create_symlink("old", root() + "/lib/libcuda.so");
  ASSERT_TRUE(kernel::make_symlink_inside(root_.get(), "/lib/libcuda.so", "new"));
  ASSERT_TRUE(kernel::make_symlink_inside(root_.get(), "/lib/libcuda.so", "new"));
  EXPECT_EQ(fs::read_symlink(root() + "/lib/libcuda.so"), "new");
  ASSERT_TRUE(kernel::make_symlink_inside(root_.get(), "/lib/real.so", "new"));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(root() + "/lib/real.so")));
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(root() + "/lib")) {
    ++count;
  }
  EXPECT_EQ(count, 2U) << "nothing is left over";
}

TEST_F(HookTest, UsesTheImagesOwnCudaIfItIsNewer) {
  EXPECT_EQ(find_compat_directory(root_.get(), "550.54.15"), "");
  write(root() + "/usr/local/cuda/compat/libcuda.so.560.35.03");
  EXPECT_EQ(find_compat_directory(root_.get(), "550.54.15"), "/usr/local/cuda/compat");
  EXPECT_EQ(find_compat_directory(root_.get(), "560.10"), "");
  EXPECT_EQ(find_compat_directory(root_.get(), "570.10"), "");
  EXPECT_EQ(find_compat_directory(root_.get(), ""), "");
}

TEST_F(HookTest, DoesNotCoverAFileOutsideProcfs) {
  write(root() + "/proc/driver/nvidia/params");
  EXPECT_TRUE(kernel::cover_proc_file(root_.get(), "/proc/driver/nvidia/params", "other"));
  EXPECT_EQ(*kernel::read_text(AT_FDCWD, root() + "/proc/driver/nvidia/params"), "text");
}

}  // namespace
}  // namespace hf::shim
