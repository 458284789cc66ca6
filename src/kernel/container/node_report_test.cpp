#include "kernel/container/node_report.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "support/fake_host.h"

namespace hf::kernel {
namespace {

namespace fs = std::filesystem;

class NodeReportTest : public testing::Test {
 protected:
  void SetUp() override { open_to(fs::perms(0755), ""); }

  void open_to(fs::perms perms, const std::string& directory) const {
    fs::permissions(fake_.root() + "/" + directory, perms);
  }
  [[nodiscard]] bool is_enclosed(const char* path) const {
    const NodeReport report = look_up_node(host_.root.get(), path);
    EXPECT_EQ(report.lookup_error, 0) << path;
    return view_of(path, report).is_enclosed;
  }

  test::FakeHost fake_{{{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
                        {"dev/dri/card0", "in place of a node"}}};
  Host host_ = fake_.open();
};

TEST_F(NodeReportTest, SaysWhereNotEveryUserMaySearchADirectory) {
  EXPECT_FALSE(is_enclosed("/dev/dri/card0"));
  for (const char* directory : {"", "dev", "dev/dri"}) {
    open_to(fs::perms(0750), directory);
    EXPECT_TRUE(is_enclosed("/dev/dri/card0")) << directory;
    open_to(fs::perms(0711), directory);
    EXPECT_FALSE(is_enclosed("/dev/dri/card0")) << directory;
  }
}

TEST_F(NodeReportTest, DoesNotKnowTheDirectoriesBehindASymlink) {
  fs::create_directory_symlink("dri", fake_.root() + "/dev/link");
  fs::create_symlink("dri/card0", fake_.root() + "/dev/card");
  EXPECT_TRUE(is_enclosed("/dev/link/card0"));
  EXPECT_TRUE(is_enclosed("/dev/card"));
}

}  // namespace
}  // namespace hf::kernel
