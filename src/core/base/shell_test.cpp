#include "core/base/shell.h"

#include <gtest/gtest.h>

namespace hf {
namespace {

using Arguments = std::vector<std::string>;

TEST(ArgumentsIn, ReadsWhatQuotedForShellWrites) {
  for (const Arguments& arguments : {Arguments{"holdfast", "grant", "train", "c 195:0 rw"},
                                     Arguments{"a'b", "", "$(x)"}, Arguments{"one"}, Arguments{"'", "'';rm"}}) {
    EXPECT_EQ(arguments_in(quoted_for_shell(arguments)), arguments);
  }
}

TEST(ArgumentsIn, LeavesOutAComment) {
  EXPECT_EQ(arguments_in("holdfast heal train   # until the next update; then again"),
            (Arguments{"holdfast", "heal", "train"}));
  EXPECT_EQ(arguments_in(""), Arguments{});
}

TEST(ArgumentsIn, RefusesWhatAShellWouldNotTakeLiterally) {
  for (const char* command : {"a && b", "a; b", "a | b", "a $(b)", "a `b`", "a > b", "a < b", "a *", "a ?", "a ~",
                              "a b#c", "a \"b\"", "a 'b", "a \\n", "a {1,2}", "a !b", "a\nb"}) {
    EXPECT_FALSE(arguments_in(command)) << command;
  }
}

}  // namespace
}  // namespace hf
