#include "core/container/cgroup/mount.h"

#include <gtest/gtest.h>

namespace hf::container {
namespace {

constexpr std::string_view kText =
    "22 1 0:21 / / rw,relatime - overlay overlay rw,lowerdir=/a\n"
    "23 22 0:22 / /dev rw,nosuid master:1 - tmpfs tmpfs rw,mode=755\n"
    "24 23 0:6 /nvidia0 /dev/nvidia0 ro,nosuid,nodev - devtmpfs udev rw\n"
    "25 22 0:23 / /with\\040blank rw - tmpfs - rw\n"
    "broken line\n";

TEST(Mountinfo, FindsTheMountThatAPathIsOn) {
  const std::vector<Mount> mounts = parse_mountinfo(kText);
  ASSERT_EQ(mounts.size(), 4);
  EXPECT_EQ(mount_over(mounts, "/dev/nvidia0")->point, "/dev/nvidia0");
  EXPECT_EQ(mount_over(mounts, "/dev/nvidia01")->point, "/dev");
  EXPECT_EQ(mount_over(mounts, "/device")->point, "/");
  EXPECT_EQ(mount_over(mounts, "/with blank/x")->point, "/with blank");
}

TEST(Mountinfo, OfEmptyTextHasNoMounts) {
  EXPECT_TRUE(parse_mountinfo("").empty());
  EXPECT_EQ(mount_over({}, "/dev"), nullptr);
}

TEST(Mountinfo, FindsTheMountThatCoversOthers) {
  const std::vector<Mount> mounts = parse_mountinfo(
      "1 0 0:1 / / rw - ext4 a rw\n2 1 0:2 / /dev rw - tmpfs b rw\n"
      "3 2 0:3 /nvidia0 /dev/nvidia0 rw - devtmpfs c rw\n4 2 0:4 / /dev rw,nodev - tmpfs over rw\n");
  EXPECT_EQ(mount_over(mounts, "/dev/nvidia0")->source, "over");
}

}  // namespace
}  // namespace hf::container
