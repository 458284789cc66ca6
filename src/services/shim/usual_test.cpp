#include "services/shim/usual.h"

#include <array>

#include <gtest/gtest.h>

namespace hf::shim {
namespace {

TEST(Usual, IsNotFoundWhereThereIsNoRoomForItsPath) {
  std::array<char, 8> small{};
  EXPECT_FALSE(find_usual("/a/folder/with/a/long/name:relative::", small));
  EXPECT_FALSE(find_in_path("/bin", "sh", std::span(small).first(7))) << "/bin/sh and its end are eight";
  EXPECT_TRUE(find_in_path("/bin", "sh", small));
}

TEST(Usual, OnlyLinesThatCountNameProgramsOfTheirOwn) {
  EXPECT_TRUE(names_programs("runtime:\n  programs: [crun]\n"));
  EXPECT_TRUE(names_programs("runtime: {programs: [crun]}"));
  EXPECT_TRUE(names_programs("# programs\nruntime:\n programs: [x]"));
  EXPECT_FALSE(names_programs("runtime:\n  # programs: [runc, crun]\n  mounts: true\n"));
  EXPECT_FALSE(names_programs("#programs"));
  EXPECT_FALSE(names_programs(""));
}

TEST(Usual, IsFoundByItsName) {
  std::array<char, 64> place{};
  ASSERT_TRUE(find_in_path("/no/such:bin:/bin", "sh", place));
  EXPECT_STREQ(place.data(), "/bin/sh");
  ASSERT_TRUE(find_in_path(nullptr, "sh", place));
  EXPECT_STREQ(place.data(), "/usr/bin/sh");
  EXPECT_FALSE(find_in_path("/bin", "no-such-program", place));
  EXPECT_FALSE(is_program("/bin"));
  EXPECT_FALSE(is_program("/etc/passwd"));
  EXPECT_FALSE(is_program("/proc/self/exe")) << "ourselves";
}

}  // namespace
}  // namespace hf::shim
