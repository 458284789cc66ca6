#include "services/cpus/marks.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "support/fake_host.h"

namespace hf::cpus {
namespace {

class MarksTest : public testing::Test {
 protected:
  test::FakeHost files_{test::Files{{"state/", ""}}};
  std::string directory_ = files_.root() + "/state";
};

TEST_F(MarksTest, PinnedContainersAreReadAsTheyWereWritten) {
  EXPECT_TRUE(read_pinned(directory_).empty());
  const Pinned pinned = {{"4f1c", *cpu::parse_cpu_set("0-1,9")}, {"unclear", cpu::CpuSet()}};
  ASSERT_TRUE(write_pinned(directory_, pinned));
  EXPECT_EQ(read_pinned(directory_), pinned);
  ASSERT_TRUE(write_pinned(directory_, {}));
  EXPECT_TRUE(read_pinned(directory_).empty());
}

TEST_F(MarksTest, OwnersAreReadAsTheyWereWritten) {
  const ByHand owners = {{"4f1c", "web"}, {"4f1c", ""}, {"uid", "main"}};
  ASSERT_TRUE(write_by_hand(directory_, owners));
  EXPECT_EQ(read_by_hand(directory_), owners);
}

TEST_F(MarksTest, ADamagedLineIsNoMark) {
  std::ofstream(directory_ + "/pinned") << "\n4f1c\t0\nno tab\nid\tno CPUs\n\t1\na\tb\tc\n" << std::string(3, '\0');
  EXPECT_EQ(read_pinned(directory_), (Pinned{{"4f1c", *cpu::parse_cpu_set("0")}}));
}

TEST_F(MarksTest, AFileIsBounded) {
  Pinned many = {{"with\na line", *cpu::parse_cpu_set("1")}};
  for (int i = 0; i < 5000; ++i) {
    many["id" + std::to_string(i)] = *cpu::parse_cpu_set("0");
  }
  ASSERT_TRUE(write_pinned(directory_, many));
  EXPECT_EQ(read_pinned(directory_).size(), 4096U);
  EXPECT_FALSE(read_pinned(directory_).contains("with"));
}

}  // namespace
}  // namespace hf::cpus
