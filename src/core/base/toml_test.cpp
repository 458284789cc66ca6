#include "core/base/toml.h"

#include <gtest/gtest.h>

namespace hf {
namespace {

TEST(Toml, AllowsNonAsciiCharactersInStringsAndCommentsOnly) {
  for (const char* text :
       {"", "a = 1\n", "# \u00e9\na = \"\u00e9\"\n", "a = '\u00e9'",
        "\xef\xbb\xbf"
        "a = 1",
        "a = \"\"\"\n\u00e9 \" \\\" \n\"\"\" # \u00e9", "a = '''\n\u00e9 ' \n'''", "a = \"\\\"\u00e9\""}) {
    EXPECT_FALSE(find_invalid_toml(text)) << text;
  }
  EXPECT_EQ(find_invalid_toml("a = 2*\u028d\n"), 6U);
  EXPECT_EQ(find_invalid_toml("a = \"open\n\u00e9"), 10U);
  EXPECT_EQ(find_invalid_toml("a = ''\u00e9"), 6U);
  EXPECT_TRUE(find_invalid_toml("\u00e9 = 1"));
}

TEST(Toml, RequiresAValueForEveryKey) {
  for (const char* text : {"a =", "a = \n", "a = ,", "a = {b = }", "a = ]", "a = # 1", "a = [\n }", "a = [,]",
                           "a = [1,,2]", "a = {b = 1,}", "a\v= 1"}) {
    EXPECT_TRUE(find_invalid_toml(text)) << text;
  }
  EXPECT_FALSE(find_invalid_toml(
      "a = {b = 1, c = 2}\nc = [\n]\nd = [1, # one\n 2,\n]\n'=' = '='\n# =\ne = {}\n[[x]]\n[y.z]\r\n"));
}

}  // namespace
}  // namespace hf
