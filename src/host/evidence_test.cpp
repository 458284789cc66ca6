#include "host/evidence.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "support/fake_host.h"

namespace hf::host {
namespace {

device::Inventory two_gpus() {
  device::Inventory inventory;
  for (const std::uint32_t i : {0U, 1U}) {
    const std::string path = "/dev/nvidia" + std::to_string(i);
    const device::Device numbers{device::Kind::character, 195, i};
    device::Node& node = inventory.nodes.emplace_back();
    node.path = path;
    node.device_class = "nvidia";
    node.part = device::Part::unit;
    node.live = numbers;
    node.expected = numbers;
    device::Unit& unit = inventory.units.emplace_back();
    unit.device_class = "nvidia";
    unit.name = std::to_string(i);
    unit.uuid = "GPU-" + std::to_string(i);
    unit.nodes = {path};
  }
  return inventory;
}

// What a container of a pod may have because of this allocation.
std::vector<std::string> given_by(const kube::Allocation& allocation) {
  const test::FakeHost fake(test::Files{{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
                                        {"proc/stat", "btime 1000\n"}});
  const kernel::Host host = fake.open();
  DiscoveredContainer discovered;
  discovered.container.id.value = "c1";
  discovered.container.pod = container::Pod{"uid-1", "pod", "default", "main"};
  Sources sources;
  sources.checkpoint = kube::Checkpoint{{allocation}, {}};
  sources.knows_allocations = true;
  std::vector<std::string> paths;
  for (const container::Claim& claim : claims_of(host, discovered, sources, two_gpus())) {
    for (const container::WantedNode& node :
         claim.refused.empty() ? claim.nodes : std::vector<container::WantedNode>()) {
      paths.push_back(node.path);
    }
  }
  std::ranges::sort(paths);
  return paths;
}

using Paths = std::vector<std::string>;

TEST(Evidence, AnAllocationOfKubeletByTheIdOfAReplica) {
  EXPECT_EQ(given_by({"uid-1", "main", "nvidia.com/gpu", {"GPU-1::3"}, {}, {}, {}}), Paths{"/dev/nvidia1"});
  EXPECT_EQ(given_by({"uid-2", "main", "nvidia.com/gpu", {"GPU-1"}, {}, {}, {}}), Paths{});
  EXPECT_EQ(given_by({"uid-1", "other", "nvidia.com/gpu", {"GPU-1"}, {}, {}, {}}), Paths{});
}

// The name of a resource is the cluster's choice; what the plugin answered says what it is.
TEST(Evidence, AnAllocationOfARenamedResource) {
  const std::map<std::string, std::string> environment = {{"NVIDIA_VISIBLE_DEVICES", "GPU-0"}};
  EXPECT_EQ(given_by({"uid-1", "main", "example.com/big-gpu", {"GPU-0"}, environment, {}, {}}),
            (Paths{"/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia0", "/dev/nvidiactl"}));
  EXPECT_EQ(given_by({"uid-1", "main", "example.com/other", {"GPU-0"}, {{"CUDA_VERSION", "12"}}, {}, {}}), Paths{});
}

// A claim that holdfast-kube prepared, as kubelet remembers it: it supports what containers of its pod have by CDI
// names, and nothing of another pod.
TEST(Evidence, AClaimThatOurDriverPrepared) {
  const test::FakeHost fake(test::Files{
      {"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
      {"proc/stat", "btime 1000\n"},
      {"var/run/cdi/holdfast-nvidia.yaml",
       "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n"
       "- name: GPU-0\n  containerEdits: {deviceNodes: [{path: /dev/nvidia0, major: 195, minor: 0}]}\n"
       "- name: GPU-1\n  containerEdits: {deviceNodes: [{path: /dev/nvidia1, major: 195, minor: 1}]}\n"
       "containerEdits: {deviceNodes: [{path: /dev/nvidiactl, major: 195, minor: 255}]}\n"},
      {"var/lib/kubelet/dra_manager_state",
       R"({"Data":"{\"kind\":\"DRACheckpoint\",\"apiVersion\":\"checkpoint.dra.kubelet.k8s.io/v1\",)"
       R"(\"ClaimInfoStateList\":[{\"ClaimUID\":\"1-2-3\",\"ClaimName\":\"gpus\",\"Namespace\":\"training\",)"
       R"(\"PodUIDs\":{\"uid-1\":{}},\"DriverState\":{\"gpu.holdfast.dev\":{\"Devices\":[{\"PoolName\":\"node1\",)"
       R"(\"DeviceName\":\"gpu-1\",\"RequestNames\":[\"gpu\"],)"
       R"(\"CDIDeviceIDs\":[\"nvidia.com/gpu=GPU-1\"]}]}}}]}","Checksum":1})"}});
  const kernel::Host host = fake.open();
  const Sources sources = read_sources(host, {});
  ASSERT_TRUE(sources.knows_allocations) << (sources.notes.empty() ? "" : sources.notes.front());
  for (const std::string pod : {"uid-1", "uid-2"}) {
    DiscoveredContainer discovered;
    discovered.container.id.value = "c1";
    discovered.container.pod = container::Pod{pod, "pod", "training", "main"};
    Paths paths;
    for (const container::Claim& claim : claims_of(host, discovered, sources, two_gpus())) {
      EXPECT_EQ(claim.refused, "");
      EXPECT_TRUE(claim.is_about_pod);
      EXPECT_EQ(claim.where, "resource claim training/gpus");
      for (const container::WantedNode& node : claim.nodes) {
        paths.push_back(node.path);
      }
    }
    std::ranges::sort(paths);
    EXPECT_EQ(paths, pod == "uid-1" ? (Paths{"/dev/nvidia1", "/dev/nvidiactl"}) : Paths{});
  }
}

}  // namespace
}  // namespace hf::host
