#include "services/cpus/manager_test.h"

#include <set>

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

}  // namespace
}  // namespace hf::cpus
