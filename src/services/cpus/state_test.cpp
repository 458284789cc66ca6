#include "services/cpus/state.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "support/fake_host.h"

namespace hf::cpus {
namespace {

std::string text_of(const std::string& file) {
  std::ifstream opened(file);
  return {std::istreambuf_iterator<char>(opened), {}};
}

class StateTest : public testing::Test {
 protected:
  test::FakeHost files_{test::Files{{"state/", ""}}};
  std::string directory_ = files_.root() + "/state";
  std::string file_ = directory_ + "/cpu_manager_state";

  [[nodiscard]] std::size_t files() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory_)) {
      ++count;
    }
    return count;
  }

  cpu::State state() {
    cpu::State made;
    made.shared = *cpu::parse_cpu_set("0-5");
    made.entries[{"pod-1", "main"}] = *cpu::parse_cpu_set("6-7");
    return made;
  }
};

TEST_F(StateTest, IsReadAsItWasWritten) {
  ASSERT_TRUE(write_state(file_, state()));
  const Result<cpu::State> read = read_state(file_);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->shared, state().shared);
  EXPECT_EQ(read->entries, state().entries);
}

TEST_F(StateTest, IsReplacedWithoutLeavingFilesBehind) {
  ASSERT_TRUE(write_state(file_, state()));
  ASSERT_TRUE(write_state(file_, state()));
  EXPECT_EQ(files(), 1U);
}

TEST_F(StateTest, ADamagedFileIsKeptBesideTheRebuiltOne) {
  std::ofstream(file_) << "{\"policyName\":";
  EXPECT_FALSE(read_state(file_));
  cpu::Rebuilt rebuilt;
  rebuilt.state = state();
  const Result<RebuiltFile> replaced = replace_state(file_, rebuilt);
  ASSERT_TRUE(replaced) << replaced.error().message;
  ASSERT_FALSE(replaced->kept_aside.empty());
  EXPECT_EQ(text_of(replaced->kept_aside), "{\"policyName\":");
  EXPECT_EQ(read_state(file_)->entries, state().entries);
}

TEST_F(StateTest, OnlySoManyDamagedFilesAreKept) {
  for (int i = 0; i < 30; ++i) {
    std::ofstream(file_) << i;
    const Result<RebuiltFile> replaced = replace_state(file_, {});
    ASSERT_TRUE(replaced) << replaced.error().message;
    EXPECT_EQ(text_of(replaced->kept_aside), std::to_string(i));
  }
  EXPECT_EQ(files(), 1U + 10U);
  EXPECT_EQ(text_of(file_ + ".damaged"), "0");
}

TEST_F(StateTest, NothingIsKeptAsideOfAFileThatCannotBeReplaced) {
  std::ofstream(file_) << "{";
  cpu::Rebuilt with_budgets;
  with_budgets.state.pods["pod-1"] = {};  // its format has no place for them
  EXPECT_FALSE(replace_state(file_, with_budgets));
  EXPECT_EQ(text_of(file_), "{");
  EXPECT_EQ(files(), 1U);
}

TEST_F(StateTest, AMissingFileIsNamed) {
  const Result<cpu::State> none = read_state(file_);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("cpu_manager_state"), std::string::npos);
}

}  // namespace
}  // namespace hf::cpus
