// Compares our choices of CPUs, and the orders behind them, with recorded ones of kubelet.
#include <gtest/gtest.h>

#include "core/cpu/pool.h"
#include "core/cpu/take.h"
#include "support/cpu_vectors.h"
#include "support/vectors.h"

namespace hf::cpu {
namespace {

using Json = nlohmann::json;

class RecordedTakes : public testing::Test {
 protected:
  void SetUp() override {
    if (test::cpu_vectors().is_null()) {
      GTEST_SKIP() << "no recorded CPU tables at " << test::vectors_directory();
    }
  }

  // Compares every entry of a table with our order.
  template <class Order>
  static void expect_lists(const char* table, Order order) {
    ASSERT_FALSE(test::cpu_vectors()[table].empty());
    for (const Json& entry : test::cpu_vectors()[table]) {
      const Layout layout(test::recorded_topology(entry["topology"]));
      const Pool pool(layout, test::cpus(entry["available"]));
      std::vector<std::uint32_t> found;
      order(layout, pool, found);
      EXPECT_EQ(found, entry["ordered_result"].get<std::vector<std::uint32_t>>()) << table << ": " << entry["case"];
    }
  }
};

Result<CpuSet> take(const Layout& layout, const Json& entry) {
  const CpuSet available = test::cpus(entry["available"]);
  if (entry["algorithm"] == "distributed") {
    return take_distributed(layout, available, entry["num_cpus"], entry["cpu_group_size"]);
  }
  return take_packed(layout, available, entry["num_cpus"],
                     {.order = entry["sort"] == "spread" ? CpuOrder::spread : CpuOrder::packed,
                      .caches = entry["prefer_align_uncore"] == true ? CacheUse::preferred : CacheUse::ignored});
}

TEST_F(RecordedTakes, ChooseTheSameCpus) {
  ASSERT_EQ(test::cpu_vectors()["take_cases"].size(), 62U);
  for (const Json& entry : test::cpu_vectors()["take_cases"]) {
    const Layout layout(test::recorded_topology(entry["topology"]));
    const Result<CpuSet> taken = take(layout, entry);
    EXPECT_EQ(taken ? "" : taken.error().message, test::error_of(entry)) << entry["name"];
    EXPECT_EQ(taken ? to_string(*taken) : "", entry["result"].get<std::string>()) << entry["name"];
  }
}

TEST_F(RecordedTakes, FindTheSameFreeSockets) {
  expect_lists("acc_freeSockets", [](const Layout& layout, const Pool& pool, std::vector<std::uint32_t>& found) {
    IndexList list;
    pool.order_sockets(list);
    for (const Index socket : list) {
      if (pool.is_free_socket(socket)) {
        found.push_back(layout.sockets.id(socket));
      }
    }
  });
}

TEST_F(RecordedTakes, FindTheSameFreeNumaNodes) {
  expect_lists("acc_freeNUMANodes", [](const Layout& layout, const Pool& pool, std::vector<std::uint32_t>& found) {
    IndexList list;
    pool.order_numa_nodes(list);
    for (const Index node : list) {
      if (pool.is_free_numa(node)) {
        found.push_back(layout.numa_nodes.id(node));
      }
    }
  });
}

TEST_F(RecordedTakes, FindTheSameFreeCores) {
  expect_lists("acc_freeCores", [](const Layout& layout, const Pool& pool, std::vector<std::uint32_t>& found) {
    pool.visit_cores([&](Index core) {
      if (pool.is_free_core(core)) {
        found.push_back(layout.cores.id(core));
      }
      return true;
    });
  });
}

TEST_F(RecordedTakes, FindTheSameFreeCpus) {
  expect_lists("acc_freeCPUs", [](const Layout& layout, const Pool& pool, std::vector<std::uint32_t>& found) {
    pool.visit_cores([&](Index core) {
      for (const Index cpu : layout.threads_of_cores.parts(core)[0].cpus) {
        if (pool.free().contains(cpu)) {
          found.push_back(cpu);
        }
      }
      return true;
    });
  });
}

}  // namespace
}  // namespace hf::cpu
