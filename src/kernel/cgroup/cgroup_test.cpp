#include "kernel/cgroup/cgroup.h"

#include <gtest/gtest.h>

#include "support/fake_host.h"

namespace hf::kernel {
namespace {

using container::Hierarchy;

constexpr const char* kHybrid =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "36 31 0:33 / /sys/fs/cgroup/devices rw,relatime shared:5 - cgroup cgroup rw,devices\n"
    "37 31 0:34 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

TEST(OpenHost, FindsTheHierarchiesThatDecideAboutDevices) {
  const test::FakeHost hybrid(test::Files{{"proc/self/mountinfo", kHybrid}});
  EXPECT_EQ(layout_of(hybrid.open()), "hybrid");
  EXPECT_EQ(hybrid.open().v1->point, "/sys/fs/cgroup/devices");
  const test::FakeHost pure(
      test::Files{{"proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}});
  EXPECT_EQ(layout_of(pure.open()), "v2");
  const test::FakeHost old(
      test::Files{{"proc/self/mountinfo", "36 31 0:33 / /cg/devices\\040x rw - cgroup cgroup rw,cpuset,devices\n"}});
  EXPECT_EQ(layout_of(old.open()), "v1");
  EXPECT_EQ(old.open().v1->point, "/cg/devices x");
}

TEST(OpenHost, FailsWhereNoHierarchyIsMounted) {
  const test::FakeHost none(test::Files{{"proc/self/mountinfo", "31 23 0:28 / /tmp rw - tmpfs tmpfs rw\nnonsense\n"}});
  const Result<Host> host = open_host(none.root());
  ASSERT_FALSE(host);
  EXPECT_NE(host.error().message.find("find cgroups"), std::string::npos);
}

TEST(OpenCgroups, FindsTheCgroupsOfAProcess) {
  const test::FakeHost fake(
      test::Files{{"proc/self/mountinfo", kHybrid},
                  {"proc/42/cgroup", "5:devices:/docker/abc\n4:memory:/x\n0::/system.slice/docker-abc.scope\n"},
                  {"sys/fs/cgroup/devices/docker/abc/", ""},
                  {"sys/fs/cgroup/unified/system.slice/docker-abc.scope/", ""}});
  const Host host = fake.open();
  const CgroupsOfProcess cgroups = *open_cgroups_of(host, container::Pid{42});
  EXPECT_EQ(cgroups.v1->path.text, "/docker/abc");
  EXPECT_EQ(cgroups.v2->where, "/sys/fs/cgroup/unified/system.slice/docker-abc.scope");
  const Result<CgroupsOfProcess> missing = open_cgroups_of(host, container::Pid{43});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, std::errc::no_such_process);
}

TEST(OpenCgroups, ResolvesPathsWhereOnlyAPartOfTheHierarchyIsMounted) {
  const test::FakeHost fake(
      test::Files{{"proc/self/mountinfo", "41 31 0:38 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
                  {"proc/42/cgroup", "0::/docker/abc/inner\n"},
                  {"proc/43/cgroup", "0::/docker/other\n"},
                  {"sys/fs/cgroup/inner/", ""}});
  const Host host = fake.open();
  EXPECT_EQ(open_cgroups_of(host, container::Pid{42})->v2->where, "/sys/fs/cgroup/inner");
  EXPECT_FALSE(open_cgroups_of(host, container::Pid{43}));
}

TEST(OpenCgroups, AcceptsADirectoryOrAPathInTheHierarchies) {
  const test::FakeHost fake(test::Files{{"proc/self/mountinfo", kHybrid},
                                        {"sys/fs/cgroup/devices/both/", ""},
                                        {"sys/fs/cgroup/unified/both/", ""},
                                        {"sys/fs/cgroup/unified/one/", ""}});
  const Host host = fake.open();
  const CgroupsOfProcess directory = *open_cgroups_at(host, "/sys/fs/cgroup/unified/both");
  EXPECT_FALSE(directory.v1);
  EXPECT_TRUE(directory.v2);
  const CgroupsOfProcess path = *open_cgroups_at(host, "/both");
  EXPECT_TRUE(path.v1 && path.v2);
  EXPECT_FALSE(open_cgroups_at(host, "/one")->v1);
  for (const char* bad : {"/none", "relative", "/both/../one", "/sys/fs/cgroup/unified/none", ""}) {
    EXPECT_FALSE(open_cgroups_at(host, bad)) << bad;
  }
}

TEST(Walk, VisitsParentsFirst) {
  const test::FakeHost fake(test::Files{
      {"proc/self/mountinfo", kHybrid}, {"sys/fs/cgroup/unified/a/b/", ""}, {"sys/fs/cgroup/unified/file", ""}});
  const Host host = fake.open();
  std::string seen;
  ASSERT_TRUE(walk(*open_root(host, Hierarchy::v2), [&](const Cgroup& cgroup) -> Result<void> {
    seen += cgroup.path.text + " ";
    return {};
  }));
  EXPECT_EQ(seen, "/ /a /a/b ");
}

}  // namespace
}  // namespace hf::kernel
