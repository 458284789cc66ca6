#include "host/cpu_tenant.h"

#include <gtest/gtest.h>

#include "adapters/oci/spec.h"
#include "host/inventory.h"
#include "host/nri_container.h"
#include "support/fake_host.h"

namespace hf::host {
namespace {

// A GPU at NUMA node 3, and one at node 1.
test::Files files() {
  test::Files files = {{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
                       {"proc/stat", "btime 1000\n"},
                       {"proc/devices", "Character devices:\n195 nvidia\n"},
                       {"proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15\n"},
                       {"sys/fs/cgroup/", ""}};
  for (const auto& [minor, bus, numa] : {std::tuple{"0", "0000:65:00.0", "3"}, std::tuple{"1", "0000:b3:00.0", "1"}}) {
    files[std::string("proc/driver/nvidia/gpus/") + bus + "/information"] =
        std::string("GPU UUID: \t GPU-") + minor + "\nBus Location: \t " + bus + "\nDevice Minor: \t " + minor + "\n";
    files[std::string("sys/bus/pci/devices/") + bus + "/numa_node"] = std::string(numa) + "\n";
    files[std::string("sys/bus/pci/devices/") + bus + "/vendor"] = "0x10de\n";
    files[std::string("sys/bus/pci/devices/") + bus + "/class"] = "0x030200\n";
  }
  return files;
}

// The NUMA nodes near which a container with both GPUs in its bundle wants its CPUs.
std::vector<cpu::NumaId> wanted(const std::string& annotations) {
  const test::FakeHost fake(files());
  const kernel::Host host = fake.open();
  DiscoveredContainer discovered;
  discovered.container.id.value = "job";
  discovered.container.cgroup = "/job";
  discovered.spec =
      oci::parse_spec(R"({"annotations":{)" + annotations +
                      R"(},"linux":{"devices":[{"path":"/dev/nvidia0","type":"c","major":195,)"
                      R"("minor":0},{"path":"/dev/nvidia1","type":"c","major":195,"minor":1}],"resources":{"devices":[)"
                      R"({"allow":true,"type":"c","major":195,"minor":0,"access":"rwm"},)"
                      R"({"allow":true,"type":"c","major":195,"minor":1,"access":"rwm"}]}}})")
          .value();
  discovered.container.labels = discovered.spec->annotations;
  std::vector<CpuTenant> tenants = cpu_tenants_of({discovered});
  locate_devices(host, {}, {discovered}, tenants);
  return tenants.at(0).tenant.device_nodes;
}

using Nodes = std::vector<cpu::NumaId>;

TEST(CpuTenant, WantsItsCpusNearItsDevices) {
  EXPECT_EQ(wanted(R"("holdfast.cpus":"4")"), (Nodes{cpu::NumaId{3}, cpu::NumaId{1}}));
  EXPECT_EQ(wanted(R"("holdfast.cpus":"4","holdfast.cpus.near":"/dev/nvidia1")"), Nodes{cpu::NumaId{1}});
  EXPECT_EQ(wanted(R"("holdfast.cpus":"4","holdfast.cpus.near":"gpu")"), (Nodes{cpu::NumaId{3}, cpu::NumaId{1}}));
}

TEST(CpuTenant, WantsThemAnywhereWhereItSaysSo) {
  EXPECT_EQ(wanted(R"("holdfast.cpus":"4","holdfast.cpus.near":"none")"), Nodes{});
  EXPECT_EQ(wanted(""), Nodes{}) << "it asks for none";
}

// What a container of a pod with two whole CPUs asks for, by its cgroup.
std::optional<cpu::CpuRequest> request_in(const std::string& cgroup, bool is_sandbox = false) {
  DiscoveredContainer discovered;
  discovered.container.id.value = "job";
  discovered.container.cgroup = cgroup;
  discovered.container.is_sandbox = is_sandbox;
  discovered.container.pod.emplace();
  discovered.container.pod->uid = "uid";
  discovered.spec =
      oci::parse_spec(R"({"linux":{"resources":{"cpu":{"shares":2048,"quota":200000,"period":100000}}}})").value();
  return cpu_tenants_of({discovered}).at(0).tenant.request;
}

TEST(CpuTenant, OnlyContainersOfGuaranteedPodsAskByTheirResources) {
  EXPECT_EQ(request_in("/kubepods/poduid/job").value_or(cpu::CpuRequest()).count, 2U);
  EXPECT_FALSE(request_in("/kubepods/burstable/poduid/job"));
  EXPECT_FALSE(request_in("/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-poduid.slice/job"));
  EXPECT_FALSE(request_in("/kubepods/poduid/job", /*is_sandbox=*/true));
}

TEST(CpuTenant, AContainerOfAUserAsksForNothing) {
  DiscoveredContainer discovered;
  discovered.container.id.value = "job";
  discovered.container.cgroup = "/user.slice/job";
  discovered.container.labels = {{"holdfast.cpus", "4"}};
  discovered.spec = oci::parse_spec("{}").value();
  EXPECT_TRUE(cpu_tenants_of({discovered}).at(0).tenant.request);
  discovered.container.is_owned_by_user = true;
  EXPECT_FALSE(cpu_tenants_of({discovered}).at(0).tenant.request);
}

TEST(CpuTenant, APodWithAnUnknownUidAsksForNothingByAnnotations) {
  DiscoveredContainer discovered;
  discovered.container.id.value = "job";
  discovered.container.cgroup = "/k8s.io/job";
  discovered.container.labels = {{"holdfast.cpus", "4"}};
  discovered.container.pod.emplace();
  discovered.spec = oci::parse_spec("{}").value();
  discovered.container.engine = "podman";
  EXPECT_TRUE(cpu_tenants_of({discovered}).at(0).tenant.request) << "no matter of kubelet";
  for (const char* engine : {"containerd", "cri-o"}) {
    discovered.container.engine = engine;
    EXPECT_FALSE(cpu_tenants_of({discovered}).at(0).tenant.request) << engine;
  }
  discovered.container.engine = "containerd";
  discovered.container.pod.reset();
  EXPECT_TRUE(cpu_tenants_of({discovered}).at(0).tenant.request) << "of ctr";
  discovered.container.name_space = "k8s.io";
  EXPECT_FALSE(cpu_tenants_of({discovered}).at(0).tenant.request);
}

nri::Container created_in(const std::string& cgroup_parent) {
  nri::Container container;
  container.pod_uid = "uid";
  container.name = "main";
  container.cgroup_parent = cgroup_parent;
  container.time = {.shares = 2048, .quota = 200'000, .period = 100'000};
  container.devices = {{"/dev/nvidia0", {device::Kind::character, 195, 0}, 0666}};
  return container;
}

TEST(NriContainer, OnlyThoseOfGuaranteedPodsAskForCpus) {
  EXPECT_EQ(tenant_of(created_in("/kubepods/poduid")).request.value_or(cpu::CpuRequest()).count, 2U);
  EXPECT_TRUE(tenant_of(created_in("kubepods-poduid.slice")).request);
  EXPECT_FALSE(tenant_of(created_in("/kubepods/burstable/poduid")).request);
  EXPECT_FALSE(tenant_of(created_in("kubepods-burstable-poduid.slice")).request);
}

// kubelet with cgroupsPerQOS=false, and other clients of CRI: the QoS class is unknown.
TEST(NriContainer, WithoutKubeletsCgroupOfItsPodItAsksForNone) {
  for (const char* parent : {"", "/", "/k8s.io", "/kubepods", "/kubepods/podother", "/poduid", "poduid",
                             "kubepods.slice", "/kubepods/poduid/below"}) {
    EXPECT_FALSE(tenant_of(created_in(parent)).request) << parent;
  }
}

kube::Allocation allocation_of(const char* container, const char* gpu) {
  kube::Allocation allocation;
  allocation.pod_uid = "uid";
  allocation.container = container;
  allocation.resource = "nvidia.com/gpu";
  allocation.ids = {gpu};
  return allocation;
}

TEST(NriContainer, IsNearTheDevicesThatItIsGivenAndThoseThatKubeletAllocated) {
  const test::FakeHost fake(files());
  const kernel::Host host = fake.open();
  HostDevices devices = read_host_devices(host, {});
  nri::Container created = created_in("/kubepods/poduid");
  const cpu::CpuRequest request;
  const auto near = [&] { return nodes_near(host, created, request, devices, device::built_in_classes()); };
  EXPECT_EQ(near(), Nodes{cpu::NumaId{3}});
  created.devices.clear();  // a runtime gives it the GPU by its environment
  EXPECT_EQ(near(), Nodes());
  devices.sources.checkpoint = kube::Checkpoint();
  devices.sources.checkpoint->allocations = {allocation_of("main", "0"), allocation_of("other", "1")};
  devices.sources.knows_allocations = true;
  EXPECT_EQ(near(), Nodes{cpu::NumaId{3}});
  created.name = "sidecar";
  EXPECT_EQ(near(), Nodes());
}

}  // namespace
}  // namespace hf::host
