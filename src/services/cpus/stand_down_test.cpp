#include "services/cpus/stand_down.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "kernel/files/file.h"
#include "services/cpus/irqs.h"
#include "support/fake_host.h"

namespace hf::cpus {
namespace {

TEST(StandDown, LeavesNothingThatWouldDisturbAnotherManager) {
  const test::FakeHost fake({{"proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 none rw\n"},
                             {"sys/fs/cgroup/", ""},
                             {"proc/irq/24/smp_affinity_list", "0-3\n"},
                             {"run/systemd/system.control/docker-a.scope.d/50-holdfast-cpus.conf", "[Scope]\n"},
                             {"run/systemd/system.control/docker-b.scope.d/50-holdfast-cpus.conf", "[Scope]\n"},
                             {"run/systemd/system.control/docker-b.scope.d/50-DeviceAllow.conf", "[Scope]\n"},
                             {"state/", ""}});
  const kernel::Host host = fake.open();
  const std::string state = fake.root() + "/state";
  const std::string irq = "proc/irq/24/smp_affinity_list";
  ASSERT_TRUE(keep_irqs_away(host, state, *cpu::parse_cpu_set("2-3")));
  ASSERT_EQ(kernel::read_text(host.root.get(), irq).value().substr(0, 3), "0-1");

  ASSERT_TRUE(stand_down(host, state));
  EXPECT_EQ(kernel::read_text(host.root.get(), irq).value().substr(0, 3), "0-3");
  const std::filesystem::path units = fake.root() + "/run/systemd/system.control";
  EXPECT_FALSE(std::filesystem::exists(units / "docker-a.scope.d"));
  EXPECT_FALSE(std::filesystem::exists(units / "docker-b.scope.d/50-holdfast-cpus.conf"));
  EXPECT_TRUE(std::filesystem::exists(units / "docker-b.scope.d/50-DeviceAllow.conf")) << "another program's";
}

}  // namespace
}  // namespace hf::cpus
