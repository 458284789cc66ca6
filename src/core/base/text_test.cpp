#include "core/base/text.h"

#include <gtest/gtest.h>

namespace hf {
namespace {

TEST(Printable, LeavesOrdinaryTextUnchanged) {
  for (const char* text : {"", "plain text", "Grüße, 世界, 🙂", "tab-less \"quotes\" <b>&</b>"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, ReplacesWhatControlsATerminal) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a?[31mb");
  EXPECT_EQ(printable("one\ntwo\r\t\x7f"), "one?two???");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "?31m");  // U+009B, a CSI in one character
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "?31m");  // the same as one byte
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "abc"),
            "?abc");                                       // U+202E reverses the direction of writing
  EXPECT_EQ(printable("\xe2\x81\xa6\xe2\x80\xa8"), "??");  // U+2066, U+2028
  EXPECT_EQ(printable("\xd8\x9c\xd8\xa7"), "?\xd8\xa7");   // U+061C, and an Arabic letter
  EXPECT_EQ(printable("\xe2\x80\x93"), "\xe2\x80\x93");    // an en dash is none of them
}

TEST(Printable, MakesValidUtf8OfAnyBytes) {
  for (const char* text : {"\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    const std::string clean = printable(text);
    EXPECT_EQ(clean.find_first_not_of('?'), std::string::npos) << clean;
    EXPECT_FALSE(clean.empty());
  }
}

TEST(Quote, IsShortPrintableAndCutsNoCharacter) {
  EXPECT_EQ(quote("a\nb"), "'a?b'");
  const std::string quoted = quote(std::string(119, 'x') + "ü and more");
  EXPECT_EQ(quoted, "'" + std::string(119, 'x') + "…'");
}

TEST(Text, NamesTheDirectoryOfAPath) {
  EXPECT_EQ(directory_of("/dev/nvidia0"), "/dev");
  EXPECT_EQ(directory_of("/dev"), "");
  EXPECT_EQ(directory_of("dev"), "dev");
}

TEST(Text, CountsWhatANounNames) {
  EXPECT_EQ(count_of(1, "rule") + ", " + count_of(0, "gate") + ", " + count_of(2U, "NUMA node"),
            "1 rule, 0 gates, 2 NUMA nodes");
}

}  // namespace
}  // namespace hf
