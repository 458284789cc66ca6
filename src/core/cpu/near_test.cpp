// prefer-device-numa: the table of docs/CPU.md.
#include <gtest/gtest.h>

#include "core/cpu/machine.h"
#include "core/cpu/policy.h"

namespace hf::cpu {
namespace {

class NearDevices : public testing::Test {
 protected:
  Result<CpuSet> choose_near(std::uint32_t count, const std::string& free, const NumaPreference& preference,
                             const std::map<std::string, std::string>& more = {}) {
    std::map<std::string, std::string> options = more;
    options["prefer-device-numa"] = "true";
    const Policy policy = *make_policy(layout_, *parse_options(options), {}, std::nullopt);
    return choose(policy, free.empty() ? layout_.cpus : *parse_cpu_set(free), count, preference);
  }

  // A DGX A100: GPU 0 sits on NUMA node 3 (48-63,176-191), whose neighbours in the socket are 0 to 2.
  Layout layout_{*find_machine("dgx-a100")};
};

TEST_F(NearDevices, TakesTheNumaNodeOfTheDeviceFirst) {
  EXPECT_EQ(to_string(*choose_near(8, "", {.device_nodes = {{3}}})), "48-51,176-179");
}

TEST_F(NearDevices, TakesTheNearestNodeNextAndNotTheNextId) {
  // Node 3 has four CPUs left, node 4 is in the other socket.
  EXPECT_EQ(to_string(*choose_near(8, "32-49,64-79,160-177,192-207", {.device_nodes = {{3}}})),
            "32-33,48-49,160-161,176-177");
}

TEST_F(NearDevices, TakesTheOtherSocketLast) {
  EXPECT_EQ(to_string(*choose_near(8, "0-1,48-49,64-79,192-207", {.device_nodes = {{3}}})), "0-1,48-49,64-65,192-193");
}

TEST_F(NearDevices, TakesAnyOfSeveralDeviceNodes) {
  const Result<CpuSet> cpus = choose_near(64, "", {.device_nodes = {{3}, {5}}});
  EXPECT_EQ(to_string(*cpus), "48-63,80-95,176-191,208-223");
}

TEST_F(NearDevices, StaysInsideTheHint) {
  EXPECT_EQ(to_string(*choose_near(4, "", {.hint = {{NumaId{0}, NumaId{2}}}, .device_nodes = {{2}}})), "32-33,160-161");
}

TEST_F(NearDevices, KeepsCoresWhole) {
  EXPECT_EQ(to_string(*choose_near(4, "40,48-49,176,180,20-22,148-150", {.device_nodes = {{3}}},
                                   {{"full-pcpus-only", "true"}})),
            "20,48,148,176");
}

TEST(NearDevice, TakesItsNodeFirstWhereAllDistancesAreEqual) {
  Topology flat = build({.sockets = 2, .nodes_per_socket = 1, .caches_per_node = 1, .cores_per_cache = 4});
  for (const std::uint32_t from : {0U, 1U}) {
    for (const std::uint32_t to : {0U, 1U}) {
      flat.distances.push_back({.from = {from}, .to = {to}, .value = 10});  // as in many virtual machines
    }
  }
  const Layout layout(std::move(flat));
  const Policy policy = *make_policy(layout, *parse_options({{"prefer-device-numa", "true"}}), {}, std::nullopt);
  EXPECT_EQ(to_string(*choose(policy, layout.cpus, 2, {.device_nodes = {{1}}})), "4-5");
}

TEST_F(NearDevices, ChoosesLikeKubeletWithoutDevices) { EXPECT_EQ(to_string(*choose_near(8, "", {})), "0-3,128-131"); }

}  // namespace
}  // namespace hf::cpu
