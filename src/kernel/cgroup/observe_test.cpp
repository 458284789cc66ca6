#include "kernel/cgroup/observe.h"

#include <gtest/gtest.h>

#include "core/bpf/generate.h"
#include "support/fake_bpf.h"
#include "support/fake_host.h"

namespace hf::kernel {
namespace {

using container::CgroupPath;
using container::Gate;

// v2 is mounted in a directory that looks like a cgroup itself.
test::FakeHost fake_host() {
  return test::FakeHost(test::Files{{"proc/self/mountinfo",
                                     "36 31 0:33 / /cg1 rw - cgroup cgroup rw,devices\n"
                                     "41 31 0:38 / /pod/c rw - cgroup2 cgroup2 rw\n"},
                                    {"pod/c/pod/c/", ""},
                                    {"cg1/devices.list", "a *:* rwm\n"},
                                    {"cg1/pod/devices.list", "c 1:3 rwm\n"}});
}

TEST(Observe, GivesEachGateThePathOfItsCgroupBelowTheMount) {
  const test::FakeHost machine = fake_host();
  const Host host = machine.open();
  test::FakeBpf bpf;
  Filters filters(host, bpf);
  const bpf::Code code = *bpf::generate(device::Table());
  CgroupsOfProcess cgroups;
  cgroups.v2 = *open_cgroup(host, container::Hierarchy::v2, {"/pod/c"});
  cgroups.v1 = *open_cgroup(host, container::Hierarchy::v1, {"/pod"});
  bpf.add(*cgroups.v2, code, "", 0);
  bpf.add(*open_parent(*cgroups.v2), code, "", 0);
  for (const bool forbids_opening : {false, true}) {
    bpf.forbids_opening = forbids_opening;
    const std::vector<Gate> gates = observe(filters, cgroups)->gates;
    ASSERT_EQ(gates.size(), 3U);
    EXPECT_EQ(gates[0].cgroup, CgroupPath{"/pod/c"});
    EXPECT_EQ(gates[0].where, "/pod/c/pod/c");
    EXPECT_EQ(depth_of(gates[0]), 2U);
    EXPECT_EQ(gates[1].cgroup, CgroupPath{"/pod"});
    EXPECT_EQ(depth_of(gates[1]), 1U);
    EXPECT_EQ(gates[2].cgroup, CgroupPath{"/pod"});
    EXPECT_EQ(gates[2].hierarchy, container::Hierarchy::v1);
  }
}

TEST(Observe, KnowsNoCgroupOfAProgramByItsId) {
  const test::FakeHost machine = fake_host();
  const Host host = machine.open();
  test::FakeBpf bpf;
  Filters filters(host, bpf);
  const Program program = *bpf.load(*bpf::generate(device::Table()));
  const Gate gate = *observe_program(filters, program.id);
  EXPECT_EQ(gate.cgroup, std::nullopt);
  EXPECT_EQ(depth_of(gate), 0U);
}

}  // namespace
}  // namespace hf::kernel
