#include "adapters/cdi/spec.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include <gtest/gtest.h>

namespace hf::cdi {
namespace {

using container::ContainerEdits;
using container::NodeEdit;
using device::Access;
using device::Device;
using device::Kind;

constexpr const char* kHead = "cdiVersion: 0.6.0\nkind: v.com/c\n";

constexpr const char* kYaml = R"(---
cdiVersion: 1.1.0
kind: nvidia.com/gpu
annotations: {made: by hand}
containerEdits:
  env: [NVIDIA_VISIBLE_DEVICES=void]
  deviceNodes:
    - path: /dev/nvidiactl
  mounts:
    - {hostPath: /usr/lib/libcuda.so.1, containerPath: /usr/lib/libcuda.so.1, options: [ro, rbind]}
    - {hostPath: tmpfs, containerPath: /cache, type: tmpfs}
  hooks:
    - {hookName: createContainer, path: /usr/bin/hook, args: [hook, --x], env: [A=b], timeout: 5}
  additionalGIDs: [44, 109]
  netDevices: [{hostInterfaceName: ib0, name: net1}]
  intelRdt: {closID: gold, l3CacheSchema: "L3:0=ff", memBwSchema: "MB:0=50", schemata: ["L2:0=f"], enableMonitoring: true}
devices:
  - name: 0
    annotations: {a: b}
    containerEdits:
      deviceNodes:
        - {path: /dev/nvidia0, hostPath: /dev/nvidia3, type: c, major: 195, minor: 3, permissions: rw, fileMode: 438}
        - {path: /dev/none, type: u, major: 10, minor: 0, permissions: none, fileMode: 0660, uid: 7, gid: 8}
  - name: sda
    containerEdits:
      deviceNodes: [{path: /dev/sda, type: b, major: 8}, {path: /dev/pipe, type: p}]
)";

ContainerEdits whole_edits() {
  ContainerEdits edits;
  edits.environment = {"NVIDIA_VISIBLE_DEVICES=void"};
  edits.nodes = {{"/dev/nvidiactl", "", std::nullopt}};
  edits.mounts = {{"/usr/lib/libcuda.so.1", "/usr/lib/libcuda.so.1", "", {"ro", "rbind"}},
                  {"tmpfs", "/cache", "tmpfs", {}}};
  edits.hooks = {{container::HookStage::create_container, "/usr/bin/hook", {"hook", "--x"}, {"A=b"}, 5}};
  edits.gids = {44, 109};
  edits.net_devices = {{"ib0", "net1"}};
  edits.intel_rdt = container::IntelRdtEdit{"gold", "L3:0=ff", "MB:0=50", {"L2:0=f"}, false, false, true};
  return edits;
}

TEST(CdiSpec, IsParsedCompletelyFromYaml) {
  const Result<Spec> spec = parse_spec(kYaml, "/etc/cdi/nvidia.yaml");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->file, "/etc/cdi/nvidia.yaml");
  EXPECT_EQ(spec->kind, "nvidia.com/gpu");
  EXPECT_EQ(spec->version, "1.1.0");
  EXPECT_EQ(spec->all, whole_edits());
  EXPECT_EQ(spec->annotations, (Annotations{{"made", "by hand"}}));
  EXPECT_EQ(spec->device_annotations.at("0"), (Annotations{{"a", "b"}}));
  ASSERT_EQ(spec->devices.size(), 2U);
  const std::vector<NodeEdit> gpu = {
      {"/dev/nvidia0", "/dev/nvidia3", Device{Kind::character, 195, 3}, Access::read | Access::write, 0666},
      {"/dev/none", "", Device{Kind::character, 10, 0}, Access::none, 0660, 7, 8}};
  EXPECT_EQ(spec->devices.at("0").nodes, gpu);
  EXPECT_EQ(spec->devices.at("sda").nodes[0].device, (Device{Kind::block, 8, 0}));
  EXPECT_EQ(spec->devices.at("sda").nodes[0].access, Access::all);
  EXPECT_EQ(spec->devices.at("sda").nodes[1].device, std::nullopt);
  EXPECT_TRUE(faults_of(*spec).empty()) << faults_of(*spec)[0];
}

TEST(CdiSpec, IsParsedFromJson) {
  const char* text =
      R"({"cdiVersion":"0.6.0","kind":"v.com/c","devices":[{"name":"a\/b","containerEdits":)"
      R"({"deviceNodes":[{"path":"/dev/x","major":1,"minor":3}]}},{"name":"none","containerEdits":{}}]})";
  const Result<Spec> spec = parse_spec(text, "f.json");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->devices.at("a/b").nodes.at(0).device, (Device{Kind::character, 1, 3}));
  EXPECT_TRUE(spec->devices.at("none").is_empty());
  EXPECT_TRUE(parse_spec("{cdiVersion: 0.6.0, kind: v.com/c}", "f")) << "YAML may look like JSON";
}

TEST(CdiSpec, IsRefusedWhereAValueIsNestedTooDeep) {
  const std::string deep = std::string(50'000, '[') + std::string(50'000, ']');
  const std::string text = R"({"cdiVersion":"0.6.0","kind":"v.com/c","devices":[{"name":"a","containerEdits":)"
                           R"({"deviceNodes":[{"path":"/dev/x","major":)" +
                           deep + "}]}}]}";
  EXPECT_FALSE(parse_spec(text, "f.json"));
}

TEST(CdiSpec, IsRefusedWithTheNameOfTheFile) {
  for (const char* text :
       {"", "~", "[]", "x", "{", "a: b: c", "kind: v/c", "cdiVersion: 0.6.0", "cdiVersion: 0.6.0\nkind: gpu",
        "cdiVersion: [0.6.0]\nkind: v/c", "cdiVersion: newest\nkind: v/c", "\xff\xfe", "!2", "? ? ?"}) {
    const Result<Spec> spec = parse_spec(text, "/etc/cdi/f.yaml");
    ASSERT_FALSE(spec) << text;
    EXPECT_TRUE(spec.error().message.starts_with("parse CDI spec /etc/cdi/f.yaml: ")) << spec.error().message;
  }
}

TEST(CdiSpec, IsRefusedForInvalidValues) {
  for (const char* rest :
       {"devices: [{}]",
        "devices: [x]",
        "devices: [{name: [a]}]",
        "devices: {}",
        "x: *unknown",
        "containerEdits: []",
        "annotations: 7",
        "annotations: {a: [b]}",
        "containerEdits: {deviceNodes: [{path: dev/x}]}",
        "containerEdits: {deviceNodes: [{}]}",
        "containerEdits: {deviceNodes: [7]}",
        "containerEdits: {deviceNodes: 7}",
        "containerEdits: {deviceNodes: [{path: /dev/x, major: -1}]}",
        "containerEdits: {deviceNodes: [{path: /dev/x, major: 4096}]}",
        "containerEdits: {deviceNodes: [{path: /dev/x, major: nvidia}]}",
        "containerEdits: {deviceNodes: [{path: /dev/x, minor: 99999999999999999999}]}",
        "containerEdits: {deviceNodes: [{path: /dev/x, type: x}]}",
        "containerEdits: {deviceNodes: [{path: /dev/x, permissions: rx}]}",
        "containerEdits: {deviceNodes: [{path: /dev/x, fileMode: 0999}]}",
        "devices: [{name: a, containerEdits: {deviceNodes: [{path: x}]}}]",
        "devices: [{name: a}, {name: a}]",
        "containerEdits: {env: [A]}",
        "containerEdits: {env: [=a]}",
        "containerEdits: {env: {}}",
        "containerEdits: {env: [[a]]}",
        "containerEdits: {hooks: 7}",
        "containerEdits: {hooks: [{hookName: creation, path: /x}]}",
        "containerEdits: {hooks: [{hookName: poststop}]}",
        "containerEdits: {hooks: [{hookName: poststop, path: /x, timeout: soon}]}",
        "containerEdits: {mounts: [{hostPath: /x}]}",
        "containerEdits: {mounts: [{containerPath: /x}]}",
        "containerEdits: {additionalGIDs: [video]}",
        "containerEdits: {intelRdt: [x]}",
        "containerEdits: {intelRdt: {enableMonitoring: maybe}}",
        "containerEdits: {netDevices: [{name: a}]}",
        "containerEdits: {netDevices: [{hostInterfaceName: a, name: b}, {hostInterfaceName: a, name: c}]}"}) {
    EXPECT_FALSE(parse_spec(std::string(kHead) + rest, "f")) << rest;
  }
}

TEST(CdiSpec, IsRefusedForUnknownFields) {
  const std::vector<std::pair<std::string, std::string>> places = {
      {"extra: {a: [b]}", "the spec"},
      {"containerEdits: {extra: 1}", "containerEdits"},
      {"devices: [{name: a, extra: 1}]", "devices"},
      {"containerEdits: {deviceNodes: [{path: /x, extra: 1}]}", "deviceNodes"},
      {"containerEdits: {mounts: [{hostPath: /x, containerPath: /x, extra: 1}]}", "mounts"},
      {"containerEdits: {hooks: [{hookName: poststop, path: /x, extra: 1}]}", "hooks"},
      {"containerEdits: {intelRdt: {extra: 1}}", "intelRdt"},
      {"containerEdits: {netDevices: [{hostInterfaceName: a, name: b, extra: 1}]}", "netDevices"}};
  for (const auto& [rest, where] : places) {
    const Result<Spec> spec = parse_spec(kHead + rest, "f");
    ASSERT_FALSE(spec) << rest;
    EXPECT_TRUE(spec.error().message.ends_with("unknown field 'extra' in " + where)) << spec.error().message;
    EXPECT_TRUE(parse_spec("cdiVersion: 2.0.0\nkind: v.com/c\n" + rest, "f")) << "a newer version may have it";
  }
}

TEST(CdiSpec, MayLeaveOutOptionalFields) {
  for (const char* rest : {"", "containerEdits:", "devices:", "annotations:", "containerEdits: {env: , mounts: []}"}) {
    const Result<Spec> spec = parse_spec(std::string(kHead) + rest, "f");
    EXPECT_TRUE(spec) << rest << ": " << spec.error().message;
  }
}

TEST(CdiSpec, ThatIsHostileIsRefusedQuickly) {
  const auto start = std::chrono::steady_clock::now();
  std::string bomb = std::string(kHead) + "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last + "," + last + "," + last + "]\n";
  }
  EXPECT_FALSE(parse_spec(bomb, "f"));
  (void)parse_spec("&a [*a]", "f");
  (void)parse_spec(std::string(kHead) + "containerEdits: &a {deviceNodes: [*a]}\n", "f");
  EXPECT_FALSE(parse_spec(std::string(100'000, '['), "f"));
  EXPECT_FALSE(parse_spec(std::string(9'000, '['), "f"));
  EXPECT_FALSE(parse_spec(std::string(9'000, '{'), "f"));
  std::string deep;
  std::string dashes;
  std::string steps;
  for (int i = 0; i < 3'000; ++i) {
    deep += R"({"a":)";
    dashes += "- ";
    steps += std::string(std::size_t(i), ' ') + "a:\n";
  }
  EXPECT_FALSE(parse_spec(deep, "f"));
  EXPECT_FALSE(parse_spec(deep + "1" + std::string(3'000, '}'), "f"));
  EXPECT_FALSE(parse_spec(dashes + "x", "f"));
  EXPECT_FALSE(parse_spec(steps, "f"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(CdiSpec, WithManyAliasesOfOneListIsParsedQuickly) {
  std::string text = std::string(kHead) + "containerEdits: &e\n  deviceNodes:\n";
  for (int i = 0; i < 2'000; ++i) {
    text += "  - path: /d\n";
  }
  text += "devices:\n";
  for (int i = 0; i < 2'000; ++i) {
    text += "- {name: " + std::to_string(i) + ", containerEdits: *e}\n";
  }
  const std::clock_t start = std::clock();  // of this process: the machine may be busy
  (void)parse_spec(text, "f");
  EXPECT_LT(std::clock() - start, 5 * CLOCKS_PER_SEC);
}

TEST(CdiSpec, MayHaveThousandsOfDevices) {
  std::string text = R"({"cdiVersion":"0.6.0","kind":"v/c","devices":[)";
  for (int i = 0; i < 3'000; ++i) {
    text += std::string(i == 0 ? "" : ",") + R"({"name":")" + std::to_string(i) +
            R"(","containerEdits":{"deviceNodes":[{"path":"/dev/x"}]}})";
  }
  EXPECT_TRUE(parse_spec(text + "]}", "f"));
}

TEST(CdiFaults, IncludeFieldsOfALaterVersion) {
  const std::vector<std::pair<std::string, std::string>> needs = {
      {"devices: [{name: a, containerEdits: {env: [A=b]}}]", "0.3.0"},
      {"containerEdits: {mounts: [{hostPath: x, containerPath: /x, type: tmpfs}]}", "0.4.0"},
      {"containerEdits: {deviceNodes: [{path: /x, hostPath: /y}]}", "0.5.0"},
      {"devices: [{name: 0a, containerEdits: {env: [A=b]}}]", "0.5.0"},
      {"annotations: {a: b}", "0.6.0"},
      {"devices: [{name: a, annotations: {a: b}}]", "0.6.0"},
      {"containerEdits: {additionalGIDs: [1]}", "0.7.0"},
      {"containerEdits: {intelRdt: {closID: a}}", "0.7.0"},
      {"containerEdits: {intelRdt: {schemata: [a]}}", "1.1.0"},
      {"containerEdits: {netDevices: [{hostInterfaceName: a, name: b}]}", "1.1.0"}};
  for (const auto& [rest, version] : needs) {
    const Result<Spec> spec = parse_spec("cdiVersion: 0.3.0\nkind: v.com/c\n" + rest, "f");
    ASSERT_TRUE(spec) << spec.error().message;
    EXPECT_EQ(required_version(*spec).version, version) << rest;
    const std::vector<std::string> faults = faults_of(*spec);
    const bool is_named = std::ranges::any_of(
        faults, [&version](const std::string& fault) { return fault.ends_with("needs " + version); });
    EXPECT_EQ(is_named, version != "0.3.0") << rest;
  }
  EXPECT_EQ(required_version(*parse_spec("cdiVersion: 0.3.0\nkind: v.com/c.d\n", "f")).version, "0.6.0");
}

TEST(CdiFaults, IncludeNamesAndVersionsThatEnginesRefuse) {
  const auto faults = [](const std::string& text) {
    const Result<Spec> spec = parse_spec(text, "f");
    return spec ? faults_of(*spec) : std::vector<std::string>{spec.error().message};
  };
  const std::string device = "devices: [{name: a, containerEdits: {env: [A=b]}}]";
  EXPECT_TRUE(faults("cdiVersion: 0.5.0\nkind: v.com/c\n" + device).empty());
  EXPECT_EQ(faults("cdiVersion: 0.9.0\nkind: v.com/c\n" + device).size(), 1U);
  EXPECT_EQ(faults("cdiVersion: 2.0.0\nkind: v.com/c\n" + device).size(), 1U);
  EXPECT_EQ(faults("cdiVersion: 0.5.0\nkind: v.com/c d\n" + device).size(), 1U);
  EXPECT_EQ(faults("cdiVersion: 0.5.0\nkind: 0.com/c\n" + device).size(), 1U);
  EXPECT_EQ(faults("cdiVersion: 0.5.0\nkind: v.com/\n" + device).size(), 1U);
  EXPECT_EQ(faults("cdiVersion: 0.5.0\nkind: v.com/c\n").size(), 1U) << "no devices";
  EXPECT_EQ(faults("cdiVersion: 0.5.0\nkind: v.com/c\ndevices: [{name: a/b, containerEdits: {env: [A=b]}}]").size(),
            1U);
  EXPECT_EQ(faults("cdiVersion: 0.5.0\nkind: v.com/c\ndevices: [{name: a}]").size(), 1U) << "no edits";
  EXPECT_EQ(
      faults("cdiVersion: 1.1.0\nkind: v.com/c\ndevices: [{name: a, containerEdits: {intelRdt: {enableCMT: true}}}]")
          .size(),
      1U);
}

NewSpec new_spec() {
  NewSpec spec;
  spec.kind = "v.com/c";
  spec.all = whole_edits();
  ContainerEdits edits;
  edits.nodes = {{"/dev/a b", "/dev/c: d", Device{Kind::block, 8, 1}, Access::read, 0640, 1, 2},
                 {"/dev/e", "", std::nullopt, Access::none}};
  edits.environment = {"A=true", "B= #x", "C=", "D=\"\\\n", "E='", "F=0x10"};
  spec.devices = {{"all", edits}, {"0", edits}, {"true", edits}, {"0:1", edits}, {"010", edits}, {"1e3", edits}};
  return spec;
}

TEST(CdiSpec, IsRecreatedByTheToolOfItsVendor) {
  const auto command = [](const std::string& kind) {
    Spec spec;
    spec.file = "/etc/cdi/x.yaml";
    spec.kind = kind;
    return recreate_command(spec);
  };
  EXPECT_EQ(command("nvidia.com/gpu"), "holdfast cdi generate --file /etc/cdi/x.yaml");
  EXPECT_EQ(command("management.nvidia.com/gpu"), "holdfast cdi generate --file /etc/cdi/x.yaml");
  EXPECT_EQ(command("holdfast.dev/rdma"), "holdfast cdi generate --class rdma --file /etc/cdi/x.yaml");
  EXPECT_EQ(command("amd.com/gpu"), "recreate /etc/cdi/x.yaml with the vendor's tool for amd.com/gpu");
}

TEST(CdiWriter, WritesSpecsThatAreParsedBackUnchanged) {
  const NewSpec written = new_spec();
  for (const std::string& text : {render_yaml(written), render_json(written)}) {
    const Result<Spec> read = parse_spec(text, "f");
    ASSERT_TRUE(read) << read.error().message << "\n" << text;
    EXPECT_EQ(read->kind, written.kind);
    EXPECT_EQ(read->version, "1.1.0");
    EXPECT_EQ(read->all, written.all) << text;
    ASSERT_EQ(read->devices.size(), written.devices.size());
    for (const auto& [name, edits] : written.devices) {
      EXPECT_EQ(read->devices.at(name), edits) << text;
    }
    EXPECT_TRUE(faults_of(*read).empty());
  }
}

TEST(CdiWriter, WritesTheLowestSufficientVersion) {
  NewSpec spec;
  spec.kind = "v.com/c";
  spec.devices = {{"a", {}}};
  spec.devices[0].second.environment = {"A=b"};
  EXPECT_EQ(render_yaml(spec), R"(---
cdiVersion: "0.3.0"
kind: v.com/c
devices:
- name: "a"
  containerEdits:
    env:
    - A=b
)");
  spec.devices[0].first = "0";
  EXPECT_NE(render_yaml(spec).find("cdiVersion: \"0.5.0\""), std::string::npos);
  EXPECT_NE(render_json(spec).find("\"cdiVersion\": \"0.5.0\""), std::string::npos);
}

}  // namespace
}  // namespace hf::cdi
