#include "core/base/suggest.h"

#include <gtest/gtest.h>

namespace hf {
namespace {

const std::vector<std::string> kCommands = {"ps", "doctor", "explain", "devices", "heal", "rules"};

TEST(Nearest, FindsWhatWasMeant) {
  EXPECT_EQ(nearest("docter", kCommands), "doctor");
  EXPECT_EQ(nearest("dcotor", kCommands), "doctor");  // two letters swapped
  EXPECT_EQ(nearest("hael", kCommands), "heal");
  EXPECT_EQ(nearest("rule", kCommands), "rules");
  EXPECT_EQ(nearest("sp", kCommands), "ps");
}

TEST(Nearest, IsSilentWhereNothingIsNear) {
  for (const char* text : {"", "x", "status", "doctor", "explode-the-whole-thing"}) {
    EXPECT_EQ(nearest(text, kCommands), "") << text;
  }
  EXPECT_EQ(nearest(std::string(1000, 'a'), {std::string(1000, 'b')}), "");
}

TEST(DidYouMean, IsTheEndOfASentence) {
  EXPECT_EQ(did_you_mean("docter", kCommands), "; did you mean doctor?");
  EXPECT_EQ(did_you_mean("status", kCommands), "");
  EXPECT_EQ(suggest("docter", kCommands), "; did you mean doctor?");
  EXPECT_EQ(suggest("status", {"ps", "doctor"}), "; there are ps, doctor");
}

}  // namespace
}  // namespace hf
