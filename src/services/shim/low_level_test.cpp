#include "services/shim/low_level.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace hf::shim {
namespace {

TEST(LowLevel, IsFoundByNameOrPathAndTheErrorNamesMissingPrograms) {
  EXPECT_EQ(*find_low_level({"/bin/sh"}), "/bin/sh");
  EXPECT_EQ(*find_low_level({"no-such-program", "/bin/sh"}), "/bin/sh");
  EXPECT_TRUE(find_low_level({"sh"})->ends_with("/sh"));
  const Result<std::string> none = find_low_level({"no-such-program", "/no/such"});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("no-such-program, /no/such"), std::string::npos);
  EXPECT_FALSE(find_low_level({"/bin"})) << "a directory is no program";
}

TEST(LowLevel, IsFoundInPathBeforeTheDefaultDirectories) {
  const char* const before = ::getenv("PATH");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("PATH", "/no/such:bin:/bin", 1);
  EXPECT_EQ(*find_low_level({"sh"}), "/bin/sh") << "relative entries are skipped";
  ::unsetenv("PATH");
  EXPECT_EQ(*find_low_level({"sh"}), "/usr/bin/sh");
  EXPECT_FALSE(find_low_level({"/etc/passwd"})) << "not executable";
  ::setenv("PATH", kept.c_str(), 1);
}

TEST(LowLevel, IsNeverThisProgramItself) { EXPECT_FALSE(find_low_level({"/proc/self/exe"})); }

TEST(LowLevel, ReturnsTheExitCodeOfTheChild) {
  EXPECT_EQ(*run_to_end("/bin/sh", {"-c", "exit 7"}), 7);
  EXPECT_EQ(*run_to_end("/bin/sh", {"-c", "kill -9 $$"}), 137);
  EXPECT_EQ(*run_to_end("/no/such", {}), 127);
}

}  // namespace
}  // namespace hf::shim
