#include "core/cpu/request.h"

#include <gtest/gtest.h>

namespace hf::cpu {
namespace {

TEST(CpuRequestOfPod, IsAWholeNumberOfCpus) {
  EXPECT_EQ(request_of_pod({.shares = 2048, .quota = 200'000, .period = 100'000})->count, 2U);
  EXPECT_EQ(request_of_pod({.shares = 3072, .quota = {}, .period = {}})->count, 3U);  // kubelet without CFS quotas
  EXPECT_EQ(request_of_pod({.shares = 1024, .quota = -1, .period = 100'000})->count, 1U);
}

TEST(CpuRequestOfPod, IsAbsentForFractions) {
  for (const CpuTime& time :
       {CpuTime{.shares = 1536, .quota = 150'000, .period = 100'000},
        CpuTime{.shares = 1023, .quota = {}, .period = {}}, CpuTime{.shares = 2, .quota = {}, .period = {}},
        CpuTime{.shares = {}, .quota = {}, .period = {}}, CpuTime{.shares = 1024, .quota = 200'000, .period = 100'000},
        CpuTime{.shares = ~std::uint64_t(1023), .quota = {}, .period = {}}}) {
    EXPECT_FALSE(request_of_pod(time)) << time.shares.value_or(0);
  }
}

TEST(CpuRequestInLabels, IsRead) {
  const CpuRequest request = **request_in({{"holdfast.cpus", "4"},
                                           {"holdfast.cpus.near", "/dev/nvidia0, /dev/nvidia1"},
                                           {"holdfast.cpus.options", "full-pcpus-only,align-by-socket=false"},
                                           {"other", "x"}});
  EXPECT_EQ(request.count, 4U);
  EXPECT_EQ(request.near, (std::vector<std::string>{"/dev/nvidia0", "/dev/nvidia1"}));
  EXPECT_TRUE(request.options->full_cores);
  EXPECT_FALSE(request.options->by_socket);
  EXPECT_TRUE((**request_in({{"holdfast.cpus", "1"}, {"holdfast.cpus.near", "gpu"}})).is_near_devices);
  EXPECT_FALSE((**request_in({{"holdfast.cpus", "1"}, {"holdfast.cpus.near", "none"}})).is_near_devices);
  EXPECT_FALSE(*request_in({{"holdfast.cpus.near", "gpu"}}));
}

TEST(CpuRequestInLabels, RefusesWhatItCannotRead) {
  for (const char* count : {"", "0", "-1", "1.5", "four", "99999999999", "9000"}) {
    EXPECT_FALSE(request_in({{"holdfast.cpus", count}})) << count;
  }
  EXPECT_FALSE(request_in({{"holdfast.cpus", "1"}, {"holdfast.cpus.near", "nvidia0"}}));
  const auto unknown = request_in({{"holdfast.cpus", "1"}, {"holdfast.cpus.options", "full-cores"}});
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("holdfast.cpus.options='full-cores'"), std::string::npos)
      << unknown.error().message;
}

}  // namespace
}  // namespace hf::cpu
