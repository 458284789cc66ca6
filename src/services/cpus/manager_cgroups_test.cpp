#include "services/cpus/manager_test.h"

#include <map>
#include <sstream>
#include <utility>

#include <sys/stat.h>

namespace hf::cpus {
namespace {

TEST_F(Managing, InterruptsLeaveExclusiveCpusAndComeBack) {
  for (const auto& [irq, cpus] : std::map<std::string, std::string>{{"24", "0-15"}, {"25", "1,9"}, {"26", "3"}}) {
    fs::create_directories(at("proc/irq/" + irq));
    put(at("proc/irq/" + irq + "/smp_affinity_list"), cpus + "\n");
  }
  const auto affinities = [this] {
    std::string all;
    for (const char* irq : {"24", "25", "26"}) {
      all += get(at(std::string("proc/irq/") + irq + "/smp_affinity_list")) + " ";
    }
    return all;
  };
  {
    Manager without = *open();
    reconcile(without, {tenant("a", 2)});
    EXPECT_EQ(affinities(), "0-15 1,9 3 ");
  }
  settings_.moves_irqs = true;
  {
    Manager manager = *open();
    reconcile(manager, {tenant("a", 2)});
    EXPECT_EQ(affinities(), "0,2-8,10-15 0,2-8,10-15 3 ");  // the second one has no CPU of its own left
    reconcile(manager, {tenant("a", 2), tenant("b", 2)});
    EXPECT_EQ(affinities(), "0,3-8,11-15 0,3-8,11-15 3 ");
    put(at("proc/irq/24/smp_affinity_list"), "0-15\n");  // irqbalance
    put(at("proc/irq/25/smp_affinity_list"), "5\n");
    now_ += 10'000'000'000;
    reconcile(manager, {tenant("a", 2), tenant("b", 2)});
    EXPECT_EQ(affinities(), "0,3-8,11-15 5 3 ");
    reconcile(manager, {tenant("b", 2)});
    EXPECT_EQ(affinities(), "0-1,3-9,11-15 1,9 3 ") << "they return to the CPUs of one that has ended";
    reconcile(manager, {tenant("a", 2), tenant("b", 2)});
    put(at("proc/irq/24/smp_affinity_list"), "0,3-8,11-15\n");  // a write to a plain file leaves its old end
    put(at("proc/irq/25/smp_affinity_list"), "5\n");
  }
  {
    Manager again = *open();
    reconcile(again, {tenant("b", 2)});
    EXPECT_EQ(affinities(), "0,3-8,11-15 5 3 ");
    reconcile(again, {tenant("b", 6)});  // 1-3,9-11
    EXPECT_EQ(affinities(), "0,4-8,12-15 5 0,4-8,12-15 ") << "what they were is in the file";
  }
  settings_.moves_irqs = false;
  Manager off = *open();
  reconcile(off, {tenant("b", 2)});
  EXPECT_EQ(affinities(), "0-15 1,9 3 ");
  EXPECT_FALSE(fs::exists(at("state/irqs")));
}

TEST_F(Managing, MemoryFollowsExclusiveCpus) {
  settings_.moves_memory = true;
  topology_ = *cpu::find_machine("dgx-a100");
  put(at("sys/devices/system/cpu/online"), "0-255\n");
  make("a", "0-255");
  make("b", "0-255");
  for (const char* name : {"a", "b"}) {
    put(cgroup(name) / "cpuset.mems", "0-7\n");
  }
  put(at("sys/fs/cgroup/cpuset/docker/cpuset.mems"), "0-7\n");
  host::CpuTenant near = tenant("a", 4);
  near.tenant.device_nodes = {cpu::NumaId{3}};
  near.tenant.request->options.emplace();
  near.tenant.request->options->near_devices = true;
  Manager manager = *open();
  reconcile(manager, {near, tenant("b")});
  EXPECT_EQ(cpus("a"), "48-49,176-177");
  EXPECT_EQ(get(cgroup("a") / "cpuset.mems"), "3");
  EXPECT_EQ(get(cgroup("b") / "cpuset.mems"), "0-7");
  near.tenant.request->count = 0;
  ASSERT_TRUE(manager.release({near, tenant("b")}, near.tenant.owner));
  EXPECT_EQ(get(cgroup("a") / "cpuset.mems"), "0-7");
  near.tenant.request->count = 4;
  reconcile(manager, {tenant("b")});
  reconcile(manager, {near, tenant("b")});
  EXPECT_EQ(get(cgroup("a") / "cpuset.mems"), "3");
  const std::optional<cpu::CpuRequest> before = std::exchange(near.tenant.request, std::nullopt);
  ASSERT_TRUE(manager.resize({near, tenant("b")}, near.tenant, before)) << "a pod gets a part of a CPU";
  EXPECT_EQ(get(cgroup("a") / "cpuset.mems"), "0-7");
}

TEST_F(Managing, MemoryStaysOnNodesThatHaveSomeAndThatAreConfigured) {
  settings_.moves_memory = true;
  topology_ = *cpu::find_machine("dgx-a100");
  put(at("sys/devices/system/cpu/online"), "0-255\n");
  fs::create_directories(at("sys/devices/system/node"));
  put(at("sys/devices/system/node/has_memory"), "0,2-7\n");
  Tenants tenants;
  for (const auto& [name, node] : std::map<std::string, std::uint32_t>{{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}}) {
    make(name, "0-255");
    put(cgroup(name) / "cpuset.mems", "5-6\n");
    host::CpuTenant& added = tenants.emplace_back(tenant(name, name == "d" ? 999 : 4));
    added.tenant.device_nodes = {cpu::NumaId{node}};
  }
  tenants[1].memory_nodes = *cpu::parse_cpu_set("5-6");
  Manager manager = *open();
  EXPECT_EQ(manager.prepare({}, tenants[0].tenant)->memory_nodes, "");
  reconcile(manager, tenants);
  EXPECT_EQ(cpus("a"), "16-17,144-145");
  EXPECT_EQ(get(cgroup("a") / "cpuset.mems"), "5-6") << "node 1 has none";
  EXPECT_EQ(get(cgroup("b") / "cpuset.mems"), "5-6") << "its configuration says so";
  EXPECT_EQ(get(cgroup("c") / "cpuset.mems"), "3");
  EXPECT_EQ(get(cgroup("d") / "cpuset.mems"), "5-6") << "its request waits";
}

TEST_F(Managing, WritersAreFoundByTheFileTheyWriteTo) {
  Manager manager = *open();
  const Tenants tenants = {tenant("a", 2), tenant("b")};
  reconcile(manager, tenants);
  const auto inode = [](const fs::path& file) {
    struct stat status{};
    return ::stat(file.c_str(), &status) == 0 ? status.st_ino : 0;
  };
  const auto name = [] { return std::string("kubelet"); };
  EXPECT_TRUE(manager.note_writer(inode(cgroup("a") / "cpuset.cpus"), name));
  EXPECT_FALSE(manager.note_writer(inode(cgroup("a") / "cgroup.procs"), name));
  for (int i = 0; i < 3; ++i) {
    put(cgroup("a") / "cpuset.cpus", "0-15\n");
    reconcile(manager, tenants);
  }
  EXPECT_NE(problem_of(manager, "a").find("kubelet keeps setting"), std::string::npos);
  EXPECT_FALSE(manager.note_writer(inode(cgroup("a") / "cpuset.cpus"), name)) << "it is left alone";
}

// On v2 both files are in one hierarchy.
class ManagingOnV2 : public Managing {
 protected:
  ManagingOnV2() {
    for (const char* name : {"a", "b"}) {
      const fs::path directory = at("sys/fs/cgroup") / name;
      fs::create_directories(directory);
      for (const auto& [file, text] : {std::pair("cgroup.procs", "17"), std::pair("cpuset.cpus", ""),
                                       std::pair("cpuset.cpus.effective", "1,9"), std::pair("cpu.max", "max 100000")}) {
        put(directory / file, std::string(text) + "\n");
      }
    }
    put(at("proc/self/mountinfo"), "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    host_ = fake_.open();
  }
  static host::CpuTenant unified(const std::string& name, std::uint32_t count) {
    host::CpuTenant tenant;
    tenant.container.id.value = name;
    tenant.container.cgroup = "/" + name;
    tenant.container.v2 = "/" + name;
    tenant.tenant = {.owner = {name, "c"}, .id = "/" + name, .request = std::nullopt};
    if (count > 0) {
      tenant.tenant.request.emplace();
      tenant.tenant.request->count = count;
    }
    return tenant;
  }
};

// A write to either has no effect: that is so in this directory, and where a user has taken the controller away.
TEST_F(ManagingOnV2, AContainerOfAUserThatCannotBeMovedBlocksNobody) {
  put(at("sys/fs/cgroup/a/cpuset.cpus.effective"), "1\n");
  host::CpuTenant stuck = unified("b", 0);
  for (const bool is_of_user : {false, true}) {
    stuck.container.is_owned_by_user = is_of_user;
    Manager manager = *open();
    reconcile(manager, {unified("a", 2), stuck});
    EXPECT_EQ(get(at("sys/fs/cgroup/a/cpuset.cpus")), is_of_user ? "1,9" : "0,2-8,10-15");
    EXPECT_NE(problem_of(manager, "b").find("allows only the CPUs 1,9"), std::string::npos);
  }
}

// A runtime has told systemd of the cpuset in a container's configuration.
TEST_F(ManagingOnV2, UnitsKeepTheCpusAtTheNextReload) {
  fs::copy(at("sys/fs/cgroup/b"), at("sys/fs/cgroup/b.scope"));
  fs::create_directories(at("run/systemd/system"));
  host::CpuTenant pooled = unified("b.scope", 0);
  pooled.container.unit = "b.scope";
  Manager manager = *open();
  const fs::path file = at("run/systemd/system.control/b.scope.d/50-holdfast-cpus.conf");
  reconcile(manager, {unified("a", 2), pooled});
  EXPECT_FALSE(fs::exists(file)) << "systemd knows of no CPUs";
  pooled.has_cpuset = true;
  reconcile(manager, {unified("a", 2), pooled});
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_EQ(text.str(), "[Scope]\nAllowedCPUs=\nAllowedCPUs=0,2-8,10-15\n");
  reconcile(manager, {unified("a", 2)});
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(ManagingOnV2, KnowsTheQuotaOfContainersWithCpusOfTheirOwn) {
  Manager manager = *open();
  reconcile(manager, {unified("a", 2), unified("b", 0)});
  const auto inode = [this](const std::string& file) {
    struct stat status{};
    return ::stat(at("sys/fs/cgroup/" + file).c_str(), &status) == 0 ? status.st_ino : 0;
  };
  EXPECT_TRUE(manager.is_quota(inode("a/cpu.max")));
  EXPECT_FALSE(manager.is_quota(inode("b/cpu.max"))) << "its limit stays";
  EXPECT_FALSE(manager.is_quota(inode("a/cpuset.cpus")));
}

TEST_F(Managing, ExclusiveCpusHaveNoQuotaAndTheLimitComesBackWithThePool) {
  Manager manager = *open();
  const Tenants tenants = {limited("a", 2, 200'000, "200000"), tenant("b")};
  reconcile(manager, tenants);
  EXPECT_EQ(get(quota_file("a")), "-1");
  ASSERT_TRUE(manager.release(tenants, {"a", "c"}));
  EXPECT_EQ(get(quota_file("a")), "200000");
}

TEST_F(Managing, ALimitBelowItsExclusiveCpusStaysUnlessTheyWereGivenByHand) {
  Manager manager = *open();
  const Tenants tenants = {limited("a", 3, 200'000, "200000"), tenant("b")};
  reconcile(manager, tenants);
  EXPECT_EQ(cpus("a"), "1,8-9");
  EXPECT_EQ(get(quota_file("a")), "200000");
  cpu::CpuRequest four;
  four.count = 4;
  ASSERT_TRUE(manager.assign(tenants, {"a", "c"}, four));
  EXPECT_EQ(get(quota_file("a")), "-1");
}

TEST_F(Managing, ExclusiveCpusAreAmongThoseThatItIsConfinedTo) {
  Manager manager = *open();
  host::CpuTenant confined = tenant("a", 2);
  confined.tenant.confined = *cpu::parse_cpu_set("4-7");
  reconcile(manager, {confined, tenant("b")});
  EXPECT_EQ(cpus("a"), "4-5");
  EXPECT_EQ(cpus("b"), "0-3,6-15");
  confined.tenant.request->count = 5;
  reconcile(manager, {tenant("b")});
  reconcile(manager, {confined, tenant("b")});
  EXPECT_EQ(cpus("a"), "4-7");
  EXPECT_NE(problem_of(manager, "a").find("it is confined to 4-7"), std::string::npos);
}

TEST_F(Managing, NothingIsWrittenThatACgroupAboveDoesNotAllow) {
  Manager manager = *open();
  const Tenants tenants = {tenant("a", 2), tenant("b"), tenant("greedy", 8)};
  put(at("sys/fs/cgroup/cpuset/docker/cpuset.cpus"), "0-3,8-11\n");
  reconcile(manager, tenants);
  EXPECT_EQ(cpus("a"), "1,9");
  EXPECT_EQ(cpus("b"), "0,2-3,8,10-11");
  EXPECT_EQ(problem_of(manager, "b"), "");
  EXPECT_NE(problem_of(manager, "greedy").find("it is confined to 0-3,8-11"), std::string::npos);
  EXPECT_EQ(to_string(manager.placement_of({"b", "c"}).cpus), "0,2-3,8,10-11");
}

TEST_F(Managing, ALimitThatAnotherProgramHasSetInThePoolStays) {
  Manager manager = *open();
  const Tenants tenants = {limited("a", 99, 200'000, "300000"), tenant("b")};
  reconcile(manager, tenants);
  EXPECT_EQ(get(quota_file("a")), "300000");
}

TEST_F(Managing, AContainerThatIsNotOnItsCpusKeepsItsLimit) {
  Manager manager = *open();
  const Tenants tenants = {limited("a", 2, 200'000, "200000"), tenant("b")};
  fs::remove(cgroup("a") / "cpuset.cpus");
  fs::create_directory(cgroup("a") / "cpuset.cpus");  // neither read nor written
  reconcile(manager, tenants);
  EXPECT_EQ(get(quota_file("a")), "200000");
}

TEST_F(Managing, APodThatWasCreatedWithoutALimitHasItsRequestAsOneInThePool) {
  Manager manager = *open();
  host::CpuTenant pod = limited("a", 2, -1, "-1");  // as NRI leaves it
  pod.container.pod.emplace();
  pod.container.pod->uid = "uid";
  const Tenants tenants = {pod, tenant("b")};
  reconcile(manager, tenants);
  EXPECT_EQ(get(quota_file("a")), "-1");
  ASSERT_TRUE(manager.release(tenants, {"a", "c"}));
  EXPECT_EQ(get(quota_file("a")), "200000");
}

TEST_F(Managing, APodWhoseCpusGoOfflineHasItsRequestAsLimit) {
  Manager manager = *open();
  host::CpuTenant pod = limited("a", 15, -1, "-1");
  pod.container.pod.emplace();
  pod.container.pod->uid = "uid";
  reconcile(manager, {pod});
  EXPECT_EQ(cpus("a"), "1-15");
  std::erase_if(topology_.cpus, [](const cpu::Cpu& cpu) { return cpu.id != 0; });
  put(at("sys/devices/system/cpu/online"), "0\n");
  reconcile(manager, {pod});
  EXPECT_EQ(cpus("a"), "0");
  EXPECT_EQ(get(quota_file("a")), "1500000");
}

TEST_F(Managing, WhatWasGivenByHandAndGoesOfflineHasItsLimitAgain) {
  const Tenants tenants = {limited("a", 0, 50'000, "50000")};
  Manager manager = *open();
  reconcile(manager, tenants);
  cpu::CpuRequest all;
  all.count = 15;
  ASSERT_TRUE(manager.assign(tenants, {"a", "c"}, all));
  EXPECT_EQ(get(quota_file("a")), "-1");
  std::erase_if(topology_.cpus, [](const cpu::Cpu& cpu) { return cpu.id != 0; });
  put(at("sys/devices/system/cpu/online"), "0\n");
  reconcile(manager, tenants);
  EXPECT_EQ(cpus("a"), "0");
  EXPECT_EQ(get(quota_file("a")), "50000");
}

TEST_F(Managing, ReadingAStatusChangesNothing) {
  Manager manager = *open();
  const report::CpuStatus status = *manager.read_status({tenant("a", 99), tenant("b")});
  EXPECT_FALSE(fs::exists(at("state")));
  EXPECT_EQ(cpus("a"), "0-15");
  ASSERT_EQ(status.containers.size(), 2U);
  EXPECT_NE(status.containers[0].problem.find("not enough cpus available"), std::string::npos);
}

// As after its last CPU went offline on v1. The kernel takes one pid with each write.
TEST_F(Managing, OnlyProcessesThatTheKernelHasMovedUpAreTakenBack) {
  Manager manager = *open();
  const Tenants tenants = {limited("a", 2, -1, "-1"), tenant("b")};
  put(cgroup("a") / "cgroup.procs", "");
  put(quota_file("a").parent_path() / "cgroup.procs", "17\n18\n19\n20\n");
  for (const auto& [pid, lines] : std::map<std::string, std::string>{
           {"17", "3:cpuset:/docker\n2:cpu,cpuacct:/docker/a\n"},
           {"18", "3:cpuset:/docker/a/inner\n2:cpu,cpuacct:/docker/a\n"},  // where the container has put it
           {"19", "3:cpuset:/\n2:cpu,cpuacct:/docker/b\n"}}) {             // another process has the pid
    fs::create_directories(at("proc/" + pid));
    put(at("proc/" + pid + "/cgroup"), lines);
  }
  reconcile(manager, tenants);
  EXPECT_EQ(cpus("a"), "1,9");
  EXPECT_EQ(get(cgroup("a") / "cgroup.procs"), "17");
}

TEST_F(Managing, NestedCgroupsKeepTheirPart) {
  Manager manager = *open();
  const host::CpuTenant container = tenant("b");
  for (const auto& [name, cpus] : {std::pair("all", "0-15\n"), std::pair("part", "1-3\n"), std::pair("lost", "1\n")}) {
    fs::create_directory(cgroup("b") / name);
    put(cgroup("b") / name / "cpuset.cpus", cpus);
  }
  reconcile(manager, {tenant("a", 2), container});
  EXPECT_EQ(get(cgroup("b") / "all/cpuset.cpus"), "0,2-8,10-15");
  EXPECT_EQ(get(cgroup("b") / "part/cpuset.cpus"), "2-3");
  EXPECT_EQ(get(cgroup("b") / "lost/cpuset.cpus"), "0,2-8,10-15");
}

}  // namespace
}  // namespace hf::cpus
