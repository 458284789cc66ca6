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
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory_)) {
    ++count;
  }
  EXPECT_EQ(count, 1U);
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

TEST_F(StateTest, AMissingFileIsNamed) {
  const Result<cpu::State> none = read_state(file_);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("cpu_manager_state"), std::string::npos);
}

}  // namespace
}  // namespace hf::cpus
