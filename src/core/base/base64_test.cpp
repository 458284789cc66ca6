#include "core/base/base64.h"

#include <gtest/gtest.h>

namespace hf {
namespace {

TEST(Base64, DecodesWithEveryPadding) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("Zg=="), "f");
  EXPECT_EQ(decode_base64("Zm8="), "fo");
  EXPECT_EQ(decode_base64("Zm9v"), "foo");
  EXPECT_EQ(decode_base64("+/8A"), std::string("\xfb\xff\0", 3));
}

TEST(Base64, RefusesWhatIsNone) {
  for (const char* text : {"Z", "Zg", "Zg=", "Z===", "Zm9v\n", "Zm 9", "Z-_v", "=Zm9"}) {
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace hf
