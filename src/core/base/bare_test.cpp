#include "core/base/bare.h"

#include <gtest/gtest.h>

namespace hf::bare {
namespace {

TEST(Bare, KnowsTextsAsTheLibraryDoes) {
  EXPECT_EQ(text_of(""), "");
  EXPECT_EQ(text_of("runc"), "runc");
  EXPECT_TRUE(is_same("", ""));
  EXPECT_TRUE(is_same("runc", "runc"));
  EXPECT_FALSE(is_same("runc", "run"));
  EXPECT_FALSE(is_same("runc", "crun"));
}

TEST(Bare, FindsLettersAndParts) {
  EXPECT_EQ(find("a=b=c", '='), 1U);
  EXPECT_EQ(find("abc", '='), 3U);
  EXPECT_EQ(find("", '='), 0U);
  EXPECT_EQ(before("a=b", 1), "a");
  EXPECT_EQ(from("a=b", 3), "");
  for (const char* text : {"programs", "my programs", "progprograms", "programs:"}) {
    EXPECT_TRUE(contains(text, "programs")) << text;
  }
  EXPECT_FALSE(contains("program", "programs"));
  EXPECT_FALSE(contains("", "programs"));
}

}  // namespace
}  // namespace hf::bare
