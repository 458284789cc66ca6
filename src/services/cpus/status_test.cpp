#include "services/cpus/status.h"

#include <gtest/gtest.h>

#include "core/cpu/machine.h"

namespace hf::cpus {
namespace {

cpu::CpuSet set(const char* text) { return *cpu::parse_cpu_set(text); }

host::CpuTenant tenant(const std::string& name, std::uint32_t count = 0) {
  host::CpuTenant tenant;
  tenant.container.id.value = name;
  tenant.tenant.id = "/docker/" + name;
  tenant.tenant.owner = {name, "c"};
  if (count > 0) {
    tenant.tenant.request.emplace();
    tenant.tenant.request->count = count;
  }
  return tenant;
}

class StatusTest : public testing::Test {
 protected:
  void add(const host::CpuTenant& tenant, std::optional<cpu::CpuSet> present) {
    tenants_.push_back(tenant);
    cpu::ManagedContainer managed;
    managed.owner = tenant.tenant.owner;
    managed.id = tenant.tenant.id;
    managed.present = std::move(present);
    managed_.push_back(managed);
  }

  [[nodiscard]] report::CpuStatus status() const { return status_of(policy_, state_, {tenants_, managed_, problems_}); }
  [[nodiscard]] std::string problem() const { return status().containers.at(0).problem; }

  const cpu::Layout layout_{*cpu::find_machine("dgx-a100")};
  const cpu::Policy policy_ = *make_policy(layout_, {}, set("0"), std::nullopt);
  cpu::State state_ = [] {
    cpu::State state;
    state.shared = set("0,2-255");
    return state;
  }();
  std::vector<host::CpuTenant> tenants_;
  std::vector<cpu::ManagedContainer> managed_;
  std::map<std::string, std::string> problems_;
};

TEST_F(StatusTest, ShowsContainersWithCpusOfTheirOwnFirst) {
  state_.entries[{"b", "c"}] = set("1");
  add(tenant("a"), set("0,2-255"));
  add(tenant("b", 1), set("1"));
  const report::CpuStatus shown = status();
  EXPECT_EQ(shown.pool, set("0,2-255"));
  EXPECT_EQ(shown.reserved, set("0"));
  ASSERT_EQ(shown.containers.size(), 2U);
  EXPECT_EQ(shown.containers[0].id, "b");
  EXPECT_TRUE(shown.containers[0].is_exclusive);
  EXPECT_EQ(shown.containers[0].cpus, set("1"));
  EXPECT_EQ(shown.containers[0].problem, "");
  EXPECT_EQ(shown.containers[1].cpus, set("0,2-255"));
  EXPECT_EQ(shown.containers[1].problem, "");
}

TEST_F(StatusTest, SaysWhatKeepsAContainerFromItsCpus) {
  add(tenant("a", 2), set("0,2-255"));
  EXPECT_EQ(problem(), "it has no CPUs of its own yet");
  state_.entries[{"a", "c"}] = {};
  EXPECT_EQ(problem(), "its CPUs were released by hand");
  managed_[0].present = set("0-255");
  EXPECT_EQ(problem(), "its cpuset is 0-255");
  problems_["/docker/a"] = "not enough cpus available";
  EXPECT_EQ(problem(), "not enough cpus available");
}

TEST_F(StatusTest, ACpusetThatCannotBeReadIsNoProblemByItself) {
  add(tenant("a"), std::nullopt);
  EXPECT_EQ(problem(), "");
}

TEST_F(StatusTest, MeasuresFromTheNearestDeviceToTheFarthestNode) {
  state_.entries[{"a", "c"}] = set("1");
  host::CpuTenant near = tenant("a", 1);
  add(near, set("1"));
  EXPECT_EQ(status().containers[0].distance, std::nullopt) << "it has no devices";
  tenants_[0].tenant.device_nodes = {cpu::NumaId{0}, cpu::NumaId{7}};
  const std::vector<cpu::NumaId> nodes = status().containers[0].nodes;
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(status().containers[0].distance, distance(layout_.topology, cpu::NumaId{0}, nodes[0]));
}

}  // namespace
}  // namespace hf::cpus
