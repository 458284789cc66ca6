#include "adapters/cdi/cdi.h"

#include <chrono>
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

std::string first_node(const std::optional<Edits>& edits) {
  return edits && !edits->nodes.empty() ? edits->nodes[0].path : "";
}

TEST(CdiSpec, IsReadFromYaml) {
  const Result<Spec> spec = parse_spec(kYaml, "/etc/cdi/nvidia.yaml");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->kind, "nvidia.com/gpu");
  EXPECT_EQ(spec->version, "0.5.0");
  ASSERT_EQ(spec->all.nodes.size(), 1U);
  EXPECT_EQ(spec->all.nodes[0].on_host(), "/dev/nvidiactl");
  EXPECT_EQ(spec->all.nodes[0].major, std::nullopt);
  EXPECT_EQ(spec->all.mounts, std::vector<std::string>{"/usr/lib/libcuda.so.1"});
  ASSERT_EQ(spec->devices.size(), 2U);
  const SpecNode& gpu = spec->devices.at("0").nodes.at(0);
  EXPECT_EQ(gpu.path, "/dev/nvidia0");
  EXPECT_EQ(gpu.on_host(), "/dev/nvidia3");
  EXPECT_EQ(gpu.kind, device::Kind::character);
  EXPECT_EQ(gpu.major, 195U);
  EXPECT_EQ(gpu.minor, 3U);
  EXPECT_EQ(gpu.permissions, "rw");
  EXPECT_EQ(spec->devices.at("sda").nodes.at(0).kind, device::Kind::block);
}

TEST(CdiSpec, IsReadFromJson) {
  const Result<Spec> spec = parse_spec(
      R"({"cdiVersion":"0.6.0","kind":"v.com/c","devices":[{"name":"a\/b","containerEdits":)"
      R"({"deviceNodes":[{"path":"/dev/x","major":1,"minor":3}]}},{"name":"none","containerEdits":{}}],"new":{"x":[1]}})",
      "f.json");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->devices.at("a/b").nodes.at(0).minor, 3U);
  EXPECT_TRUE(spec->devices.at("none").nodes.empty());
}

TEST(CdiSpec, IsRefusedWithTheFilesName) {
  const std::string head = "cdiVersion: 0.6.0\nkind: v/c\n";
  for (const std::string& text : {std::string(),
                                  std::string("~"),
                                  std::string("[]"),
                                  std::string("x"),
                                  std::string("{"),
                                  std::string("a: b: c"),
                                  std::string("kind: v/c"),
                                  std::string("cdiVersion: 0.6.0"),
                                  std::string("cdiVersion: 0.6.0\nkind: gpu"),
                                  std::string("cdiVersion: [0.6.0]\nkind: v/c"),
                                  head + "devices: [{}]",
                                  head + "devices: [x]",
                                  head + "devices: [{name: [a]}]",
                                  head + "containerEdits: {deviceNodes: [{path: dev/x}]}",
                                  head + "containerEdits: {deviceNodes: [{}]}",
                                  head + "containerEdits: {deviceNodes: [7]}",
                                  head + "containerEdits: {deviceNodes: [{path: /dev/x, major: -1}]}",
                                  head + "containerEdits: {deviceNodes: [{path: /dev/x, major: 4096}]}",
                                  head + "containerEdits: {deviceNodes: [{path: /dev/x, major: nvidia}]}",
                                  head + "containerEdits: {deviceNodes: [{path: /dev/x, minor: 99999999999999999999}]}",
                                  head + "devices: [{name: a, containerEdits: {deviceNodes: [{path: x}]}}]",
                                  head + "x: *unknown",
                                  std::string("\xff\xfe"),
                                  std::string("!2"),
                                  std::string("? ? ?")}) {
    const Result<Spec> spec = parse_spec(text, "/etc/cdi/f.yaml");
    ASSERT_FALSE(spec) << text;
    EXPECT_TRUE(spec.error().message.starts_with("parse CDI spec /etc/cdi/f.yaml: ")) << spec.error().message;
  }
}

TEST(CdiSpec, PassesOverFieldsOfNoInterest) {
  const std::string head = "cdiVersion: 0.6.0\nkind: v/c\n";
  for (const char* rest : {"", "containerEdits:", "containerEdits: []", "devices:", "unknown: {a: [b]}",
                           "annotations: 7", "containerEdits: {mounts: [1, {}, {hostPath: /x}], env: {}, hooks: 7}"}) {
    const Result<Spec> spec = parse_spec(head + rest, "f");
    EXPECT_TRUE(spec) << rest;
  }
}

TEST(CdiSpec, ThatIsHostileIsDoneWithSoon) {
  const auto start = std::chrono::steady_clock::now();
  std::string bomb = "cdiVersion: 0.6.0\nkind: v/c\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last + "," + last + "," + last + "]\n";
  }
  EXPECT_TRUE(parse_spec(bomb, "f"));
  (void)parse_spec("&a [*a]", "f");
  (void)parse_spec("cdiVersion: 0.6.0\nkind: v/c\ncontainerEdits: &a {deviceNodes: [*a]}\n", "f");
  EXPECT_FALSE(parse_spec(std::string(100'000, '['), "f"));
  EXPECT_FALSE(parse_spec(std::string(9'000, '['), "f"));
  EXPECT_FALSE(parse_spec(std::string(9'000, '{'), "f"));
  std::string dashes;
  std::string steps;
  for (int i = 0; i < 3'000; ++i) {
    dashes += "- ";
    steps += std::string(std::size_t(i), ' ') + "a:\n";
  }
  EXPECT_FALSE(parse_spec(dashes + "x", "f"));
  EXPECT_FALSE(parse_spec(steps, "f"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(CdiRegistry, ResolvesANameToItsEditsAndThoseOfAll) {
  const FakeHost host = host_with({{"etc/cdi/nvidia.yaml", kYaml}});
  const Registry registry = read_registry(host.open());
  ASSERT_TRUE(registry.broken.empty()) << registry.broken[0].why;
  const std::optional<Edits> edits = registry.resolve("nvidia.com/gpu=0");
  ASSERT_TRUE(edits);
  ASSERT_EQ(edits->nodes.size(), 2U);
  EXPECT_EQ(edits->nodes[1].path, "/dev/nvidiactl");
  for (const char* name :
       {"", "=", "0", "nvidia.com/gpu", "nvidia.com/gpu=", "nvidia.com/gpu=1", "other/gpu=0", "nvidia.com/gpu=0 "}) {
    EXPECT_FALSE(registry.resolve(name)) << name;
  }
}

TEST(CdiRegistry, LetsTheFolderOfTheRunningSystemHideTheOther) {
  const FakeHost host =
      host_with({{"etc/cdi/a.yaml", spec_with("0", "/dev/etc")}, {"var/run/cdi/a.json", spec_with("0", "/dev/run")}});
  const Registry registry = read_registry(host.open());
  EXPECT_EQ(first_node(registry.resolve("nvidia.com/gpu=0")), "/dev/run");
  ASSERT_EQ(registry.shadows.size(), 1U);
  EXPECT_EQ(registry.shadows[0].device, "nvidia.com/gpu=0");
  EXPECT_EQ(registry.shadows[0].by, "/var/run/cdi/a.json");
  EXPECT_EQ(registry.shadows[0].hidden, "/etc/cdi/a.yaml");
  EXPECT_FALSE(registry.shadows[0].is_conflict);
  EXPECT_FALSE(registry.is_effective(registry.specs[0], "0"));
  EXPECT_TRUE(registry.is_effective(registry.specs[1], "0"));
}

TEST(CdiRegistry, ResolvesNothingThatTwoSpecsOfAFolderHave) {
  const FakeHost host =
      host_with({{"etc/cdi/a.yaml", spec_with("0", "/dev/a")}, {"etc/cdi/b.yaml", spec_with("0", "/dev/b")}});
  const Registry registry = read_registry(host.open());
  EXPECT_FALSE(registry.resolve("nvidia.com/gpu=0"));
  ASSERT_EQ(registry.shadows.size(), 1U);
  EXPECT_TRUE(registry.shadows[0].is_conflict);
  EXPECT_FALSE(registry.is_effective(registry.specs[0], "0"));
  EXPECT_FALSE(registry.is_effective(registry.specs[1], "0"));
}

TEST(CdiRegistry, TellsEverySpecOfAConflict) {
  const FakeHost host = host_with({{"etc/cdi/a.yaml", spec_with("0", "/dev/a")},
                                   {"etc/cdi/b.yaml", spec_with("0", "/dev/b")},
                                   {"etc/cdi/c.yaml", spec_with("0", "/dev/c")}});
  const Registry registry = read_registry(host.open());
  EXPECT_FALSE(registry.resolve("nvidia.com/gpu=0"));
  ASSERT_EQ(registry.shadows.size(), 2U);
  EXPECT_TRUE(registry.shadows[0].is_conflict);
  EXPECT_TRUE(registry.shadows[1].is_conflict);
}

TEST(CdiRegistry, KeepsOfABrokenSpecItsNameAndWhy) {
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

TEST(CdiRegistry, DoesNotTrustASpecThatOthersMayHaveWritten) {
  const FakeHost host = host_with({{"etc/cdi/a.yaml", spec_with("0", "/dev/a")},
                                   {"etc/cdi/b.yaml", spec_with("1", "/dev/b")},
                                   {"etc/cdi/real", spec_with("2", "/dev/c")}});
  ASSERT_EQ(::chmod((host.root() + "/etc/cdi/a.yaml").c_str(), 0666), 0);
  std::filesystem::create_symlink("real", host.root() + "/etc/cdi/c.yaml");
  std::filesystem::create_symlink("nowhere", host.root() + "/etc/cdi/d.yaml");
  const Registry registry = read_registry(host.open());
  EXPECT_EQ(registry.specs.size(), 1U);
  EXPECT_EQ(registry.broken.size(), 3U);
  EXPECT_FALSE(registry.resolve("nvidia.com/gpu=0"));
  EXPECT_TRUE(registry.resolve("nvidia.com/gpu=1"));
  EXPECT_FALSE(registry.resolve("nvidia.com/gpu=2"));
  if (::chown((host.root() + "/etc/cdi/b.yaml").c_str(), 1000, 1000) != 0) {
    GTEST_SKIP() << "only root can give a file away";
  }
  EXPECT_FALSE(read_registry(host.open()).resolve("nvidia.com/gpu=1"));
}

TEST(CdiRegistry, OfNoFoldersIsEmpty) {
  const Registry registry = read_registry(host_with({}).open());
  EXPECT_TRUE(registry.specs.empty());
  EXPECT_TRUE(registry.broken.empty());
}

// The CDI library deletes every name that two specs of any one folder have (cache.go: refresh), also where a stronger
// folder has it.
TEST(CdiRegistry, ResolvesNoConflictOfTheWeakerFolder) {
  const FakeHost host = host_with({{"etc/cdi/a.yaml", spec_with("0", "/dev/a")},
                                   {"etc/cdi/b.yaml", spec_with("0", "/dev/b")},
                                   {"var/run/cdi/c.yaml", spec_with("0", "/dev/c")}});
  EXPECT_FALSE(read_registry(host.open()).resolve("nvidia.com/gpu=0"));
}

TEST(CdiSpec, ThatNamesOneListOftenIsDoneWithSoon) {
  std::string text = "cdiVersion: 0.6.0\nkind: v/c\ncontainerEdits: &e\n  deviceNodes:\n";
  for (int i = 0; i < 2'000; ++i) {
    text += "  - path: /d\n";
  }
  text += "devices:\n";
  for (int i = 0; i < 2'000; ++i) {
    text += "- {name: " + std::to_string(i) + ", containerEdits: *e}\n";
  }
  const auto start = std::chrono::steady_clock::now();
  (void)parse_spec(text, "f");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(CdiSpec, MayHaveThousandsOfDevices) {
  std::string text = R"({"cdiVersion":"0.6.0","kind":"v/c","devices":[)";
  for (int i = 0; i < 3'000; ++i) {
    text += std::string(i == 0 ? "" : ",") + R"({"name":")" + std::to_string(i) +
            R"(","containerEdits":{"deviceNodes":[{"path":"/dev/x"}]}})";
  }
  EXPECT_TRUE(parse_spec(text + "]}", "f"));
}

}  // namespace
}  // namespace hf::cdi
