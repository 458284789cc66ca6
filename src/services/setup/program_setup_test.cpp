#include "services/setup/program_setup.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <unistd.h>

namespace hf::setup {
namespace {

class ProgramSetup : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "needs root: a program of root's is compared";
    }
    std::string pattern = std::filesystem::temp_directory_path() / "hf-program-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    write("first");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& text) const { std::ofstream(root_ + "/holdfast-runtime") << text; }
  [[nodiscard]] ProgramSetupOptions options(RunMode mode = RunMode::carry_out) const {
    return {root_ + "/holdfast-runtime", root_ + "/opt/holdfast/bin", mode};
  }
  [[nodiscard]] std::string copy() const { return root_ + "/opt/holdfast/bin/holdfast-runtime"; }
  [[nodiscard]] std::string copied() const {
    std::ifstream file(copy());
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string root_;
};

TEST_F(ProgramSetup, CopiesAProgramThatCanBeRunAndDoesSoOnce) {
  const auto done = install_program(options());
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_FALSE(done->changes_nothing());
  EXPECT_EQ(copied(), "first");
  EXPECT_EQ(std::filesystem::status(copy()).permissions(), std::filesystem::perms(0755));
  EXPECT_TRUE(install_program(options())->changes_nothing());
}

TEST_F(ProgramSetup, ReplacesAnotherVersionAndAnotherMode) {
  ASSERT_TRUE(install_program(options()));
  write("second");
  EXPECT_FALSE(install_program(options())->changes_nothing());
  EXPECT_EQ(copied(), "second");
  std::filesystem::permissions(copy(), std::filesystem::perms(0777));
  EXPECT_FALSE(install_program(options())->changes_nothing());
  EXPECT_EQ(std::filesystem::status(copy()).permissions(), std::filesystem::perms(0755));
}

TEST_F(ProgramSetup, OnlySaysWhatItWouldDo) {
  EXPECT_FALSE(install_program(options(RunMode::dry_run))->changes_nothing());
  EXPECT_FALSE(std::filesystem::exists(copy()));
  EXPECT_TRUE(remove_program(options(RunMode::dry_run))->changes_nothing());
}

TEST_F(ProgramSetup, RemovesTheCopy) {
  ASSERT_TRUE(install_program(options()));
  EXPECT_FALSE(remove_program(options())->changes_nothing());
  EXPECT_FALSE(std::filesystem::exists(copy()));
  EXPECT_TRUE(remove_program(options())->changes_nothing());
}

TEST_F(ProgramSetup, NamesAProgramThatIsNotThere) {
  ProgramSetupOptions missing = options();
  missing.source += "-x";
  const auto done = install_program(missing);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("holdfast-runtime-x"), std::string::npos);
}

}  // namespace
}  // namespace hf::setup
