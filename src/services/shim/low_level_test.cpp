#include "services/shim/low_level.h"

#include <gtest/gtest.h>

namespace hf::shim {
namespace {

TEST(LowLevel, IsFoundByNameOrPathAndNamedWhereItIsNot) {
  EXPECT_EQ(*find_low_level({"/bin/sh"}), "/bin/sh");
  EXPECT_EQ(*find_low_level({"no-such-program", "/bin/sh"}), "/bin/sh");
  EXPECT_TRUE(find_low_level({"sh"})->ends_with("/sh"));
  const Result<std::string> none = find_low_level({"no-such-program", "/no/such"});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("no-such-program, /no/such"), std::string::npos);
  EXPECT_FALSE(find_low_level({"/bin"})) << "a folder is no program";
}

TEST(LowLevel, IsNeverOurselves) { EXPECT_FALSE(find_low_level({"/proc/self/exe"})); }

TEST(LowLevel, ItsExitCodeIsOurs) {
  EXPECT_EQ(*run_to_end("/bin/sh", {"-c", "exit 7"}), 7);
  EXPECT_EQ(*run_to_end("/bin/sh", {"-c", "kill -9 $$"}), 137);
  EXPECT_EQ(*run_to_end("/no/such", {}), 127);
}

}  // namespace
}  // namespace hf::shim
