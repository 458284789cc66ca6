#include "services/specs/check.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "render/cdi.h"
#include "support/fake_host.h"

namespace hf::specs {
namespace {

using report::CdiCheck;
using report::Finding;
using report::Severity;
using test::FakeHost;
using test::Files;

FakeHost host_with(Files files) {
  files["proc/self/mountinfo"] = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  return FakeHost(files);
}

std::string spec_of(const std::string& device, const std::string& edits) {
  return "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: \"" + device + "\"\n  containerEdits: {" + edits +
         "}\n";
}

device::Inventory inventory() {
  device::Inventory inventory;
  inventory.drivers = device::parse_driver_names("Character devices:\n238 nvidia-uvm\n");
  device::Node node;
  node.path = "/dev/nvidia-uvm";
  node.device_class = "nvidia";
  node.expected = device::Device{device::Kind::character, 238, 0};
  node.live = node.expected;
  inventory.nodes.push_back(node);
  return inventory;
}

std::string text_of(const CdiCheck& check) {
  std::string text;
  for (const Finding& finding : check.findings) {
    text += finding.code + " " + sentence_of(finding) + "\n";
    for (const std::string& line : finding.evidence) {
      text += line + "\n";
    }
    for (const std::string& line : finding.cure) {
      text += "cure: " + line + "\n";
    }
  }
  return text;
}

TEST(CdiCheck, FindsNothingWrongWithAGoodSpec) {
  const FakeHost host = host_with(
      {{"etc/cdi/a.yaml", spec_of("0",
                                  "deviceNodes: [{path: /dev/nvidia-uvm, major: 238, minor: 0}], mounts: "
                                  "[{hostPath: /lib/x, containerPath: /x}, {hostPath: tmpfs, containerPath: /y}]")},
       {"lib/x", ""}});
  const CdiCheck check = check_registry(host.open(), inventory());
  EXPECT_TRUE(check.is_well()) << text_of(check);
  EXPECT_EQ(check.specs, 1U);
  EXPECT_EQ(check.devices, 1U);
  EXPECT_TRUE(check_registry(host_with({}).open(), inventory()).is_well()) << "no specs are no fault";
}

TEST(CdiCheck, FindsStaleNumbers) {
  const FakeHost host =
      host_with({{"etc/cdi/a.yaml", spec_of("0",
                                            "deviceNodes: [{path: /dev/nvidia-uvm, major: 510, minor: 0}, {path: "
                                            "/dev/gone, major: 77, minor: 1}]")}});
  const CdiCheck check = check_registry(host.open(), inventory());
  EXPECT_FALSE(check.is_well());
  const std::string text = text_of(check);
  EXPECT_NE(text.find("HF-308 the CDI spec /etc/cdi/a.yaml is stale"), std::string::npos) << text;
  EXPECT_NE(text.find("/dev/nvidia-uvm: the spec has 510:0, now it is 238:0"), std::string::npos) << text;
  EXPECT_NE(text.find("/dev/gone: the spec has 77:1, and no driver has this number now"), std::string::npos);
  EXPECT_NE(text.find("cure: holdfast cdi generate --file /etc/cdi/a.yaml"), std::string::npos) << text;
}

TEST(CdiCheck, FindsFilesNodesAndHooksThatAreMissing) {
  const FakeHost host = host_with(
      {{"etc/cdi/a.yaml", spec_of("0",
                                  "deviceNodes: [{path: /dev/none}], mounts: [{hostPath: /lib/x, containerPath: "
                                  "/x}], hooks: [{hookName: createContainer, path: /bin/hook}]")}});
  const CdiCheck check = check_registry(host.open(), inventory());
  ASSERT_EQ(check.findings.size(), 1U);
  EXPECT_EQ(check.findings[0].evidence, (std::vector<std::string>{"/bin/hook: no such program, and it is a hook",
                                                                  "/dev/none: no such node", "/lib/x: no such file"}));
}

TEST(CdiCheck, SuggestsInstallingOurHookRatherThanRecreatingTheSpec) {
  const FakeHost host = host_with(
      {{"etc/cdi/a.yaml", spec_of("0", "hooks: [{hookName: createContainer, path: /usr/bin/holdfast-runtime}]")}});
  const CdiCheck check = check_registry(host.open(), inventory());
  ASSERT_EQ(check.findings.size(), 1U);
  EXPECT_EQ(check.findings[0].cure,
            std::vector<std::string>{"install -m 755 holdfast-runtime /usr/bin/holdfast-runtime"});
}

TEST(CdiCheck, FindsSpecsThatEnginesRefuse) {
  const FakeHost host = host_with({{"etc/cdi/a.yaml",
                                    "cdiVersion: 0.3.0\nkind: holdfast.dev/fuse\ndevices:\n- name: a\n"
                                    "  containerEdits: {additionalGIDs: [1]}\n"},
                                   {"etc/cdi/b.yaml", "cdiVersion: 0.5.0\nkind: v.com/c\nnew: 1\n"}});
  const std::string text = text_of(check_registry(host.open(), inventory()));
  EXPECT_NE(text.find("cdiVersion is 0.3.0, and additionalGIDs needs 0.7.0"), std::string::npos) << text;
  EXPECT_NE(text.find("cure: holdfast cdi generate --class fuse --file /etc/cdi/a.yaml"), std::string::npos);
  EXPECT_NE(text.find("unknown field 'new'"), std::string::npos) << text;
}

TEST(CdiCheck, DistinguishesAConflictFromAHiddenSpec) {
  const std::string spec = spec_of("0", "env: [A=b]");
  const FakeHost hidden = host_with({{"etc/cdi/a.yaml", spec}, {"var/run/cdi/b.yaml", spec}});
  const CdiCheck check = check_registry(hidden.open(), inventory());
  ASSERT_EQ(check.findings.size(), 1U);
  EXPECT_EQ(check.findings[0].severity, Severity::note);
  EXPECT_TRUE(check.is_well());
  const FakeHost conflict = host_with({{"etc/cdi/a.yaml", spec}, {"etc/cdi/b.yaml", spec}});
  EXPECT_FALSE(check_registry(conflict.open(), inventory()).is_well());
}

TEST(CdiCheck, ChecksFilesInAnyDirectory) {
  const FakeHost host = host_with({{"a.yaml", spec_of("0", "env: [A=b]")}, {"b.json", "{"}});
  EXPECT_TRUE(check_files(host.open(), inventory(), {host.root() + "/a.yaml"})->is_well());
  EXPECT_FALSE(check_files(host.open(), inventory(), {host.root() + "/a.yaml", host.root() + "/b.json"})->is_well());
  EXPECT_FALSE(check_files(host.open(), inventory(), {host.root() + "/none.yaml"}));
}

TEST(CdiList, ReportsTheStateOfEachDevice) {
  const FakeHost host = host_with({{"etc/cdi/a.yaml", spec_of("0", "env: [A=b]")},
                                   {"var/run/cdi/b.yaml", spec_of("0", "deviceNodes: [{path: /dev/x}]")},
                                   {"etc/cdi/c.yaml", spec_of("1", "env: [A=b]")},
                                   {"etc/cdi/d.yaml", spec_of("1", "env: [A=b]")},
                                   {"etc/cdi/e.yaml", "{"}});
  const report::CdiList list = list_devices(host.open());
  ASSERT_EQ(list.devices.size(), 4U);
  EXPECT_EQ(list.devices[0].state, "hidden");
  EXPECT_EQ(list.devices[1].state, "ok");
  EXPECT_EQ(list.devices[1].nodes, 1U);
  EXPECT_EQ(list.devices[2].state, "conflict");
  EXPECT_EQ(list.devices[3].state, "conflict");
  EXPECT_EQ(list.broken.size(), 1U);
  EXPECT_NE(render_text(list).find("nvidia.com/gpu=0"), std::string::npos);
}

TEST(CdiResolve, MergesTheDevicesOfAContainer) {
  const FakeHost host =
      host_with({{"etc/cdi/a.yaml",
                  "cdiVersion: 0.5.0\nkind: v.com/c\ncontainerEdits: {env: [ALL=1]}\ndevices:\n- {name: a, "
                  "containerEdits: {env: [A=1]}}\n- {name: b, containerEdits: {env: [B=1]}}\n"}});
  const cdi::Registry registry = cdi::read_registry(host.open());
  EXPECT_EQ(resolve(registry, {"v.com/c=a", "v.com/c=b"})->environment,
            (std::vector<std::string>{"ALL=1", "A=1", "B=1"}));
  const Result<container::ContainerEdits> unknown = resolve(registry, {"v.com/c=a", "v.com/c=z"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "resolve 'v.com/c=z': no spec of /etc/cdi or /var/run/cdi has it (holdfast cdi list)");
  EXPECT_FALSE(resolve(registry, {"gpu"}));
}

}  // namespace
}  // namespace hf::specs
