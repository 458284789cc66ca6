#include "services/cpus/manager_test.h"

#include <set>
#include <sstream>
#include <utility>

#include <sys/stat.h>

namespace hf::cpus {
namespace {

TEST_F(Managing, GivesAndTakesBack) {
  Manager manager = *open();
  reconcile(manager, {tenant("a", 2), tenant("b")});
  EXPECT_EQ(cpus("a"), "1,9");
  EXPECT_EQ(cpus("b"), "0,2-8,10-15");
  reconcile(manager, {tenant("b")});
  EXPECT_EQ(cpus("b"), "0-15");
}

TEST_F(Managing, WritesOnlyWhatDiffers) {
  Manager manager = *open();
  reconcile(manager, {tenant("a", 2), tenant("b")});
  const auto before = fs::last_write_time(cgroup("b") / "cpuset.cpus");
  reconcile(manager, {tenant("a", 2), tenant("b"), tenant("c")});
  EXPECT_EQ(fs::last_write_time(cgroup("b") / "cpuset.cpus"), before);
  EXPECT_EQ(cpus("c"), "0,2-8,10-15");
}

TEST_F(Managing, ARestartFindsItsState) {
  {
    Manager manager = *open();
    reconcile(manager, {tenant("a", 2), tenant("b", 2)});
  }
  Manager manager = *open();
  reconcile(manager, {tenant("b", 2), tenant("a", 2)});
  EXPECT_EQ(cpus("a"), "1,9");
  EXPECT_EQ(cpus("b"), "2,10");
}

TEST_F(Managing, ADamagedStateIsRebuiltFromTheCpusets) {
  {
    Manager manager = *open();
    reconcile(manager, {tenant("a", 2), tenant("b"), tenant("c")});
  }
  put(at("state/cpu_manager_state"), "{");
  Manager manager = *open();
  reconcile(manager, {tenant("a", 2), tenant("b"), tenant("c")});
  EXPECT_EQ(cpus("a"), "1,9");
  EXPECT_EQ(cpus("b"), "0,2-8,10-15");
  EXPECT_TRUE(fs::exists(at("state/cpu_manager_state.damaged")));
  EXPECT_NE(log_.find("cpu-state-rebuilt"), std::string::npos);
}

TEST_F(Managing, AContainerConfinedByItsStarterIsNoOwnerAfterARebuild) {
  make("pinned", "4-7");
  put(at("state-of-nothing"), "");
  fs::create_directories(at("state"));
  put(at("state/cpu_manager_state"), "{");
  Manager manager = *open();
  host::CpuTenant pinned = tenant("pinned");
  pinned.tenant.confined = *cpu::parse_cpu_set("4-7");
  reconcile(manager, {pinned, tenant("b")});
  EXPECT_EQ(cpus("b"), "0-15");
  EXPECT_EQ(cpus("pinned"), "4-7");
}

TEST_F(Managing, WhatCannotBeMovedBlocksItsCpus) {
  Manager manager = *open();
  fs::remove(cgroup("b"));
  host::CpuTenant stuck = tenant("b");
  fs::remove(cgroup("b") / "cpuset.cpus");
  fs::create_directory(cgroup("b") / "cpuset.cpus");  // neither read nor written
  reconcile(manager, {tenant("a", 2), stuck, tenant("c")});
  EXPECT_NE(problem_of(manager, "b"), "");
  EXPECT_EQ(cpus("c"), "0,2-8,10-15");
}

// NRI: an update that is answered after the limit makes the engine write the cpuset of its config.
TEST_F(Managing, AnEngineThatWasAnsweredTooLateIsNoOtherWriter) {
  Manager manager = *open();
  const Tenants tenants = {tenant("a", 2), tenant("b")};
  reconcile(manager, tenants);
  for (int i = 0; i < 10; ++i) {
    manager.expect_write_of_engine(tenants.front().tenant.owner, now_);
    put(cgroup("a") / "cpuset.cpus", "0-15\n");
    reconcile(manager, tenants);
    EXPECT_EQ(cpus("a"), "1,9");
  }
  EXPECT_EQ(problem_of(manager, "a"), "");
}

// A reconciliation that ran when the engine asked has seen its write before it is told of it.
TEST_F(Managing, AWriteThatWasCountedBeforeItWasExpectedIsForgotten) {
  Manager manager = *open();
  const Tenants tenants = {tenant("a", 2), tenant("b")};
  reconcile(manager, tenants);
  for (int i = 0; i < 5; ++i) {
    now_ += 6'000'000'000;  // an earlier expectation is over
    const std::uint64_t asked = now_;
    put(cgroup("a") / "cpuset.cpus", "0-15\n");
    reconcile(manager, tenants);
    EXPECT_EQ(cpus("a"), "1,9");
    manager.expect_write_of_engine(tenants.front().tenant.owner, asked);
  }
  EXPECT_EQ(problem_of(manager, "a"), "");
}

TEST_F(Managing, AnotherWriterIsLeftAlone) {
  Manager manager = *open();
  const Tenants tenants = {tenant("a", 2), tenant("b")};
  reconcile(manager, tenants);
  for (int i = 0; i < 2; ++i) {
    put(cgroup("a") / "cpuset.cpus", "0-15\n");
    reconcile(manager, tenants);
    EXPECT_EQ(cpus("a"), "1,9");
  }
  put(cgroup("a") / "cpuset.cpus", "0-15\n");
  reconcile(manager, tenants);
  EXPECT_EQ(cpus("a"), "0-15");
  EXPECT_NE(problem_of(manager, "a").find("keeps setting its cpuset to 0-15"), std::string::npos);
  now_ += 120'000'000'000;  // two minutes later
  reconcile(manager, tenants);
  EXPECT_EQ(cpus("a"), "1,9");
}

TEST_F(Managing, ACensusFromBeforeAChangeEndsNothing) {
  Manager manager = *open();
  const std::uint64_t began = now_ + 1;
  now_ += 10;
  reconcile(manager, {tenant("a", 2), tenant("b")});
  ASSERT_TRUE(manager.reconcile({tenant("b")}, {.census_at = began, .owners = {}}));
  EXPECT_TRUE(manager.wants_census());
  EXPECT_EQ(cpus("b"), "0,2-8,10-15");
  reconcile(manager, {tenant("b")});
  EXPECT_FALSE(manager.wants_census());
  EXPECT_EQ(cpus("b"), "0-15");
}

TEST_F(Managing, KnowsWhichContainersACensusHasMissed) {
  Manager manager = *open();
  const host::CpuTenant missed = tenant("a", 2);
  EXPECT_FALSE(manager.is_running(missed)) << "it is not known yet";
  reconcile(manager, {missed, tenant("b")});
  EXPECT_TRUE(manager.is_running(missed));
  put(cgroup("a") / "cgroup.procs", "");
  EXPECT_FALSE(manager.is_running(missed));
  fs::create_directory(cgroup("a") / "inner");
  EXPECT_TRUE(manager.is_running(missed));
  fs::remove_all(cgroup("a"));
  EXPECT_FALSE(manager.is_running(missed));
}

TEST_F(Managing, AnotherManagersChangesCount) {
  Manager one = *open();
  Manager other = *open();
  reconcile(one, {tenant("a", 2), tenant("b")});
  const std::uint64_t began = now_;
  ASSERT_TRUE(other.reconcile({tenant("b")}, {.census_at = began, .owners = {}}));
  EXPECT_TRUE(other.wants_census());
  EXPECT_EQ(cpus("a"), "1,9");
  EXPECT_EQ(cpus("b"), "0,2-8,10-15");
}

TEST_F(Managing, PreparesAContainerThatDoesNotRunYet) {
  Manager manager = *open();
  const Tenants running = {tenant("b")};
  reconcile(manager, running);
  cpu::Tenant created = tenant("new", 2).tenant;
  manager.expect(created.owner);
  const Manager::Prepared prepared = *manager.prepare(running, created);
  EXPECT_TRUE(prepared.is_exclusive);
  EXPECT_EQ(to_string(prepared.cpus), "1,9");
  EXPECT_EQ(cpus("b"), "0,2-8,10-15");  // before the new one starts
  reconcile(manager, running);          // it is not in this census
  EXPECT_EQ(to_string(manager.placement_of(created.owner).cpus), "1,9");
  manager.forget(created.owner);
  reconcile(manager, running);
  EXPECT_EQ(cpus("b"), "0-15");
  created.request.reset();
  EXPECT_EQ(to_string(manager.prepare(running, created)->cpus), "0-15");
}

TEST_F(Managing, AContainerWhoseCpusCannotBeReadBlocksNobody) {
  Manager manager = *open();
  const host::CpuTenant unknown = tenant("b");
  fs::remove(cgroup("b") / "cpuset.cpus");
  fs::create_directory(cgroup("b") / "cpuset.cpus");
  const Manager::Prepared prepared = *manager.prepare({unknown}, tenant("new", 2).tenant);
  EXPECT_TRUE(prepared.is_exclusive);
  EXPECT_EQ(to_string(prepared.cpus), "1,9");
}

// On v1 a runtime cannot write CPUs that the cgroup above does not have, and the container would not start.
TEST_F(Managing, PreparesNothingThatACgroupAboveDoesNotAllow) {
  Manager manager = *open();
  reconcile(manager, {tenant("b")});
  const fs::path pod = at("sys/fs/cgroup/cpuset/kubepods/pod1");
  fs::create_directories(pod);
  const auto prepare = [&](const std::string& name, std::uint32_t count, const std::string& allowed) {
    put(pod / "cpuset.cpus", allowed + "\n");
    cpu::Tenant created = tenant(name, count).tenant;
    created.id = name;  // the engine's: it has no cgroup yet
    created.confined = manager.allowed_in("/kubepods/pod1");
    manager.expect(created.owner);
    return *manager.prepare({tenant("b")}, created);
  };
  EXPECT_EQ(to_string(prepare("pooled", 0, "0-15").cpus), "0-15");
  EXPECT_EQ(to_string(prepare("less", 0, "0-3").cpus), "0-3");
  EXPECT_EQ(to_string(prepare("own", 2, "4-15").cpus), "4,12");
  EXPECT_EQ(to_string(prepare("rest", 0, "4-6,12").cpus), "5-6");
  const Manager::Prepared too_many = prepare("greedy", 8, "4-6,12");
  EXPECT_FALSE(too_many.is_exclusive);
  EXPECT_EQ(to_string(too_many.cpus), "5-6");
  EXPECT_EQ(to_string(prepare("none", 0, "4,12").cpus), "") << "the engine decides";
  EXPECT_FALSE(manager.allowed_in("/kubepods/absent"));
}

TEST_F(Managing, CpusThatACgroupAboveDoesNotAllowAnyMoreAreReplaced) {
  Manager manager = *open();
  const Tenants tenants = {tenant("a", 2), tenant("b")};
  put(at("sys/fs/cgroup/cpuset/docker/cpuset.cpus"), "0-15\n");
  reconcile(manager, tenants);
  EXPECT_EQ(cpus("a"), "1,9");
  put(at("sys/fs/cgroup/cpuset/docker/cpuset.cpus"), "0,2-15\n");
  reconcile(manager, tenants);
  EXPECT_EQ(cpus("a"), "8-9") << "both are halves of cores that others have already";
  EXPECT_EQ(cpus("b"), "0,2-7,10-15");
  EXPECT_EQ(problem_of(manager, "a"), "");
}

TEST_F(Managing, AContainerThatIsStartedAgainHasAnotherCgroup) {
  Manager manager = *open();
  reconcile(manager, {tenant("a", 2), tenant("b")});
  for (int i = 0; i < 5; ++i) {  // that is no contest with another program
    fs::remove_all(cgroup("a"));
    make("a");
    reconcile(manager, {tenant("a", 2), tenant("b")});
    EXPECT_EQ(cpus("a"), "1,9");
  }
  EXPECT_EQ(problem_of(manager, "a"), "");
}

TEST_F(Managing, RefusesBesideKubeletsStaticPolicy) {
  Manager manager = *open();
  fs::create_directories(at("var/lib/kubelet"));
  put(at("var/lib/kubelet/cpu_manager_state"), R"({"policyName":"static","defaultCpuSet":"0-15","checksum":0})");
  EXPECT_FALSE(open());
  const Result<void> done = manager.reconcile({tenant("a", 2)}, {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, std::errc::operation_not_permitted);
  EXPECT_EQ(cpus("a"), "0-15");
}

TEST_F(Managing, NothingIsDoneThatIsNotRecorded) {
  Manager manager = *open();
  reconcile(manager, {tenant("b")});
  fs::remove(at("state/cpu_manager_state"));
  fs::create_directories(at("state/cpu_manager_state/x"));  // cannot be replaced by a file
  EXPECT_FALSE(manager.reconcile({tenant("a", 2), tenant("b")}, {}));
  EXPECT_EQ(cpus("a"), "0-15");
}

TEST_F(Managing, LabelsMayAskForSoManyAndNoMore) {
  settings_.most = 2;
  Manager manager = *open();
  host::CpuTenant pod = tenant("pod", 4);
  pod.container.pod.emplace();
  pod.container.pod->uid = "uid";
  reconcile(manager, {tenant("a", 3), tenant("b", 2), pod});
  EXPECT_EQ(problem_of(manager, "a"), "it asks for 3 CPUs, and cpus.most allows 2");
  EXPECT_EQ(cpus("b"), "1,9");
  EXPECT_EQ(cpus("pod"), "2-3,10-11");
}

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

TEST_F(Managing, ByHand) {
  Manager manager = *open();
  const Tenants tenants = {tenant("a"), tenant("b", 2)};
  reconcile(manager, tenants);
  cpu::CpuRequest request;
  request.count = 2;
  EXPECT_EQ(to_string(*manager.assign(tenants, {"a", "c"}, request)), "2,10");
  EXPECT_EQ(cpus("a"), "2,10");
  ASSERT_TRUE(manager.release(tenants, {"b", "c"}));
  EXPECT_EQ(cpus("b"), "0-1,3-9,11-15");
  reconcile(manager, tenants);
  EXPECT_EQ(cpus("b"), "0-1,3-9,11-15");
  EXPECT_EQ(cpus("a"), "2,10");
  request.count = 99;
  EXPECT_FALSE(manager.assign(tenants, {"a", "c"}, request));
  EXPECT_EQ(cpus("a"), "2,10");
}

TEST_F(Managing, WhatWasGivenByHandIsNotMadeUpToWhatItAsksFor) {
  const Tenants tenants = {tenant("a", 2), tenant("b")};
  cpu::CpuRequest request;
  request.count = 1;
  {
    Manager manager = *open();
    reconcile(manager, tenants);
    ASSERT_EQ(to_string(*manager.assign(tenants, {"a", "c"}, request)), "8");
    reconcile(manager, tenants);
    EXPECT_EQ(cpus("a"), "8");
  }
  Manager again = *open();
  reconcile(again, tenants);
  EXPECT_EQ(cpus("a"), "8");
  request.count = 2;
  ASSERT_EQ(to_string(*again.assign(tenants, {"a", "c"}, request)), "1,9") << "as it asks for itself";
  request.count = 1;
  ASSERT_TRUE(again.assign(tenants, {"a", "c"}, request));
  reconcile(again, {tenant("b")});
  reconcile(again, tenants);
  EXPECT_EQ(cpus("a"), "1,9") << "it has ended, and was started again";
}

TEST_F(Managing, WhatWasGivenByHandComesBackWithItsCpus) {
  Manager manager = *open();
  const Tenants tenants = {tenant("a"), tenant("b")};
  cpu::CpuRequest request;
  request.count = 2;
  ASSERT_EQ(to_string(*manager.assign(tenants, {"a", "c"}, request)), "1,9");
  const cpu::Topology all = topology_;
  for (const std::set<std::uint32_t>& gone : {std::set<std::uint32_t>{9}, {1, 9}}) {
    std::erase_if(topology_.cpus, [&](const cpu::Cpu& cpu) { return gone.contains(cpu.id); });
    put(at("sys/devices/system/cpu/online"), gone.size() == 1 ? "0-8,10-15\n" : "0,2-8,10-15\n");
    reconcile(manager, tenants);
    EXPECT_EQ(cpus("a"), gone.size() == 1 ? "1" : "0,2-8,10-15");
    topology_ = all;
    put(at("sys/devices/system/cpu/online"), "0-15\n");
    reconcile(manager, tenants);
    EXPECT_EQ(cpus("a"), "1,9");
    EXPECT_EQ(cpus("b"), "0,2-8,10-15");
  }
  std::erase_if(topology_.cpus, [](const cpu::Cpu& cpu) { return cpu.id == 1 || cpu.id == 9; });
  put(at("sys/devices/system/cpu/online"), "0,2-8,10-15\n");
  reconcile(manager, {tenant("b")});  // it has ended meanwhile
  topology_ = all;
  put(at("sys/devices/system/cpu/online"), "0-15\n");
  reconcile(manager, {tenant("b")});
  EXPECT_EQ(cpus("b"), "0-15");
}

TEST_F(Managing, AReservedCpuStaysReservedAndTakesThePlaceOfNoOwner) {
  settings_.reserved = {};
  settings_.reserved_count = 1;
  const Tenants tenants = {tenant("a", 1), tenant("b", 2), tenant("c")};
  const cpu::Topology all = topology_;
  const auto offline = [&](std::uint32_t gone, const std::string& online) {
    topology_ = all;
    std::erase_if(topology_.cpus, [gone](const cpu::Cpu& cpu) { return cpu.id == gone; });
    put(at("sys/devices/system/cpu/online"), online + "\n");
  };
  Manager manager = *open();
  reconcile(manager, tenants);
  EXPECT_EQ(to_string(manager.status().reserved), "0");
  EXPECT_EQ(cpus("a"), "8");
  EXPECT_EQ(cpus("b"), "1,9");
  offline(9, "0-8,10-15");
  reconcile(manager, tenants);
  EXPECT_EQ(to_string(manager.status().reserved), "0");
  EXPECT_TRUE(cpu::parse_cpu_set(cpus("b"))->contains(1));
  offline(0, "1-15");
  reconcile(manager, tenants);
  EXPECT_EQ(cpus("a"), "8") << "what is left of the reserved CPU's core";
  const std::string other = to_string(manager.status().reserved);
  EXPECT_EQ(other, "9") << "the rest of a core that is split already";
  Manager again = *open();
  reconcile(again, tenants);
  EXPECT_EQ(cpus("a"), "8");
  EXPECT_EQ(to_string(again.status().reserved), other);
  offline(99, "0-15");
  reconcile(manager, tenants);
  EXPECT_EQ(to_string(manager.status().reserved), other) << "it is online";
}

TEST_F(Managing, AnAssignmentThatCannotBeWrittenLeavesWhatItHad) {
  Manager manager = *open();
  const Tenants tenants = {tenant("a", 2), tenant("b")};
  reconcile(manager, tenants);
  fs::remove(cgroup("a") / "cpuset.cpus");
  fs::create_directory(cgroup("a") / "cpuset.cpus");  // neither read nor written
  cpu::CpuRequest request;
  request.count = 4;
  EXPECT_FALSE(manager.assign(tenants, {"a", "c"}, request));
  fs::remove(cgroup("a") / "cpuset.cpus");
  put(cgroup("a") / "cpuset.cpus", "0-15\n");
  reconcile(manager, tenants);
  EXPECT_EQ(cpus("a"), "1,9");
}

TEST_F(Managing, AResizedPodGetsMoreCpusOrKeepsSomeOfItsOwn) {
  Manager manager = *open();
  Tenants tenants = {tenant("a", 2), tenant("b", 1)};
  reconcile(manager, tenants);
  const auto resize = [&](std::uint32_t count) {
    const std::optional<cpu::CpuRequest> before = tenants[0].tenant.request;
    tenants[0].tenant.request = count == 0 ? std::nullopt : std::optional(cpu::CpuRequest{count, {}, true, {}});
    return to_string(manager.resize(tenants, tenants[0].tenant, before)->cpus);
  };
  EXPECT_EQ(resize(4), "1-2,9-10");
  EXPECT_EQ(cpus("a"), "1-2,9-10");
  EXPECT_EQ(resize(2), "1,9");
  EXPECT_EQ(cpus("a"), "1,9");
  EXPECT_EQ(resize(0), "0-7,9-15") << "a fraction: the pool";
  EXPECT_EQ(cpus("a"), "0-7,9-15");
}

TEST_F(Managing, AResizeIsNoMatterOfCpusThatWereGivenByHand) {
  Manager manager = *open();
  Tenants tenants = {tenant("a", 2)};
  cpu::CpuRequest four;
  four.count = 4;
  ASSERT_TRUE(manager.assign(tenants, {"a", "c"}, four));
  const std::optional<cpu::CpuRequest> before = tenants[0].tenant.request;
  tenants[0].tenant.request->count = 1;
  EXPECT_EQ(manager.resize(tenants, tenants[0].tenant, before)->cpus.count(), 4U);
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
