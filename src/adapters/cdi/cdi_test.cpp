#include "adapters/cdi/cdi.h"

#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "support/fake_host.h"

namespace hf::cdi {
namespace {

using test::FakeHost;
using test::Files;

constexpr const char* kYaml = R"(---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
containerEdits:
  env: [NVIDIA_VISIBLE_DEVICES=void]
  deviceNodes:
    - path: /dev/nvidiactl
  mounts:
    - {hostPath: /usr/lib/libcuda.so.1, containerPath: /usr/lib/libcuda.so.1, options: [ro]}
  hooks:
    - {hookName: createContainer, path: /usr/bin/nvidia-cdi-hook}
devices:
  - name: "0"
    containerEdits:
      deviceNodes:
        - {path: /dev/nvidia0, hostPath: /dev/nvidia3, type: c, major: 195, minor: 3, permissions: rw, fileMode: 438}
  - name: sda
    containerEdits:
      deviceNodes: [{path: /dev/sda, type: b}]
)";

std::string spec_with(const std::string& device, const std::string& node) {
  return "cdiVersion: 0.6.0\nkind: nvidia.com/gpu\ndevices:\n- name: \"" + device +
         "\"\n  containerEdits:\n    deviceNodes:\n    - path: " + node + "\n";
}

FakeHost host_with(Files files) {
  files["proc/self/mountinfo"] = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  return FakeHost(files);
}

std::string first_node(const std::optional<container::ContainerEdits>& edits) {
  return edits && !edits->nodes.empty() ? edits->nodes[0].path : "";
}

TEST(CdiRegistry, ResolvesANameToItsEditsAndThoseOfTheWholeSpec) {
  const FakeHost host = host_with({{"etc/cdi/nvidia.yaml", kYaml}});
  const Registry registry = read_registry(host.open());
  ASSERT_TRUE(registry.broken.empty()) << registry.broken[0].why;
  const std::optional<container::ContainerEdits> edits = registry.edits_of("nvidia.com/gpu=0");
  ASSERT_TRUE(edits);
  ASSERT_EQ(edits->nodes.size(), 2U);
  EXPECT_EQ(edits->nodes[0].path, "/dev/nvidiactl");
  EXPECT_EQ(edits->nodes[1].path, "/dev/nvidia0");
  EXPECT_EQ(edits->environment, std::vector<std::string>{"NVIDIA_VISIBLE_DEVICES=void"});
  EXPECT_EQ(edits->hooks.size(), 1U);
  for (const char* name :
       {"", "=", "0", "nvidia.com/gpu", "nvidia.com/gpu=", "nvidia.com/gpu=1", "other/gpu=0", "nvidia.com/gpu=0 "}) {
    EXPECT_FALSE(registry.edits_of(name)) << name;
  }
}

TEST(CdiRegistry, PrefersVarRunCdiToEtcCdi) {
  const FakeHost host =
      host_with({{"etc/cdi/a.yaml", spec_with("0", "/dev/etc")}, {"var/run/cdi/a.json", spec_with("0", "/dev/run")}});
  const Registry registry = read_registry(host.open());
  EXPECT_EQ(first_node(registry.edits_of("nvidia.com/gpu=0")), "/dev/run");
  ASSERT_EQ(registry.shadows.size(), 1U);
  EXPECT_EQ(registry.shadows[0].device, "nvidia.com/gpu=0");
  EXPECT_EQ(registry.shadows[0].by, "/var/run/cdi/a.json");
  EXPECT_EQ(registry.shadows[0].hidden, "/etc/cdi/a.yaml");
  EXPECT_FALSE(registry.shadows[0].is_conflict);
  EXPECT_FALSE(registry.is_effective(registry.specs[0], "0"));
  EXPECT_TRUE(registry.is_effective(registry.specs[1], "0"));
}

TEST(CdiRegistry, DoesNotResolveANameThatTwoSpecsOfADirectoryDefine) {
  const FakeHost host =
      host_with({{"etc/cdi/a.yaml", spec_with("0", "/dev/a")}, {"etc/cdi/b.yaml", spec_with("0", "/dev/b")}});
  const Registry registry = read_registry(host.open());
  EXPECT_FALSE(registry.edits_of("nvidia.com/gpu=0"));
  ASSERT_EQ(registry.shadows.size(), 1U);
  EXPECT_TRUE(registry.shadows[0].is_conflict);
  EXPECT_FALSE(registry.is_effective(registry.specs[0], "0"));
  EXPECT_FALSE(registry.is_effective(registry.specs[1], "0"));
}

TEST(CdiRegistry, ReportsEverySpecOfAConflict) {
  const FakeHost host = host_with({{"etc/cdi/a.yaml", spec_with("0", "/dev/a")},
                                   {"etc/cdi/b.yaml", spec_with("0", "/dev/b")},
                                   {"etc/cdi/c.yaml", spec_with("0", "/dev/c")}});
  const Registry registry = read_registry(host.open());
  EXPECT_FALSE(registry.edits_of("nvidia.com/gpu=0"));
  ASSERT_EQ(registry.shadows.size(), 2U);
  EXPECT_TRUE(registry.shadows[0].is_conflict);
  EXPECT_TRUE(registry.shadows[1].is_conflict);
}

TEST(CdiRegistry, ReportsTheFileOfABrokenSpecAndTheReason) {
  const FakeHost host = host_with({{"etc/cdi/a.yaml", "{"},
                                   {"etc/cdi/b.json", "[]"},
                                   {"etc/cdi/c.yaml", spec_with("0", "/dev/c")},
                                   {"etc/cdi/readme.txt", "{"},
                                   {"etc/cdi/d.yaml/", ""}});
  const Registry registry = read_registry(host.open());
  EXPECT_EQ(registry.specs.size(), 1U);
  ASSERT_EQ(registry.broken.size(), 3U);
  EXPECT_EQ(registry.broken[0].file, "/etc/cdi/a.yaml");
  EXPECT_FALSE(registry.broken[0].why.empty());
}

TEST(CdiRegistry, DoesNotTrustASpecThatOthersMayWrite) {
  const FakeHost host = host_with({{"etc/cdi/a.yaml", spec_with("0", "/dev/a")},
                                   {"etc/cdi/b.yaml", spec_with("1", "/dev/b")},
                                   {"etc/cdi/real", spec_with("2", "/dev/c")}});
  ASSERT_EQ(::chmod((host.root() + "/etc/cdi/a.yaml").c_str(), 0666), 0);
  std::filesystem::create_symlink("real", host.root() + "/etc/cdi/c.yaml");
  std::filesystem::create_symlink("nowhere", host.root() + "/etc/cdi/d.yaml");
  const Registry registry = read_registry(host.open());
  EXPECT_EQ(registry.specs.size(), 1U);
  EXPECT_EQ(registry.broken.size(), 3U);
  EXPECT_FALSE(registry.edits_of("nvidia.com/gpu=0"));
  EXPECT_TRUE(registry.edits_of("nvidia.com/gpu=1"));
  EXPECT_FALSE(registry.edits_of("nvidia.com/gpu=2"));
  if (::chown((host.root() + "/etc/cdi/b.yaml").c_str(), 1000, 1000) != 0) {
    GTEST_SKIP() << "only root can change the owner of a file";
  }
  EXPECT_FALSE(read_registry(host.open()).edits_of("nvidia.com/gpu=1"));
}

TEST(CdiRegistry, IsEmptyWithoutDirectories) {
  const Registry registry = read_registry(host_with({}).open());
  EXPECT_TRUE(registry.specs.empty());
  EXPECT_TRUE(registry.broken.empty());
}

// The CDI library deletes every name that two specs of one directory define (cache.go: refresh), even if a directory of
// higher precedence defines it too.
TEST(CdiRegistry, DoesNotResolveAConflictOfTheOverriddenDirectory) {
  const FakeHost host = host_with({{"etc/cdi/a.yaml", spec_with("0", "/dev/a")},
                                   {"etc/cdi/b.yaml", spec_with("0", "/dev/b")},
                                   {"var/run/cdi/c.yaml", spec_with("0", "/dev/c")}});
  EXPECT_FALSE(read_registry(host.open()).edits_of("nvidia.com/gpu=0"));
}

}  // namespace
}  // namespace hf::cdi
