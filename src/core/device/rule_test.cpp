#include "core/device/rule.h"

#include <gtest/gtest.h>

namespace hf::device {
namespace {

TEST(ParseRule, ReadsTheKernelsFormat) {
  const Rule rule = *parse_rule("c 195:* rw");
  EXPECT_EQ(rule.selector.kind, Kind::character);
  EXPECT_EQ(rule.selector.major, (Span{195, 195}));
  EXPECT_EQ(rule.selector.minor, std::nullopt);
  EXPECT_EQ(rule.access, Access::read | Access::write);
  EXPECT_EQ(*parse_rule("a"), *parse_rule("a *:* rwm"));
}

TEST(ParseRule, IsPrintedAsItWasWritten) {
  for (const char* text : {"c 195:* rw", "b 8:0-15 rwm", "a *:* rwm", "c *:7 m", "c 240-254:* r", "c 10:200-* w",
                           "c 1:3 rw exactly", "b 4095:1048575 m"}) {
    EXPECT_EQ(to_string(*parse_rule(text)), text);
  }
}

TEST(ParseRule, NamesWhatIsWrong) {
  for (const char* text : {"", "c", "c 195 rw", "x 1:3 rw", "c 1:3", "c 1:3 ", "c 1:3 q", "c 1:3 rr", "c -1:3 r",
                           "c 1:3 rw more", "c 4096:0 r", "c 1:1048576 r", "c 1:4294967295 r", "c 9-3:* r", "c 1-:0 r",
                           "c 0x1:3 r", "c 99999999999:0 r", "c 1:3:4 r", "c +1:3 r"}) {
    const Result<Rule> rule = parse_rule(text);
    ASSERT_FALSE(rule) << text;
    EXPECT_NE(rule.error().message.find("parse rule"), std::string::npos) << rule.error().message;
  }
}

TEST(ParseRequest, ReadsKindDeviceNumberAndAccess) {
  EXPECT_EQ(*parse_request("c:195:0:rw"), (Request{{Kind::character, 195, 0}, Access::read | Access::write}));
  EXPECT_EQ(to_string(*parse_request("b:8:1:wr")), "b:8:1:rw");
}

TEST(ParseRequest, RefusesAnythingElse) {
  for (const char* text :
       {"", "c:195:0", "c:195:0:", "a:1:3:r", "c:*:3:r", "c:1:3:rx", "c:1:3:r:w", "c:-1:0:r", "c: 1:0:r"}) {
    EXPECT_FALSE(parse_request(text)) << text;
  }
}

TEST(Selector, ContainsAndOverlaps) {
  const auto selector = [](const char* text) { return parse_rule(text)->selector; };
  EXPECT_TRUE(selector("c 195:* r").contains(selector("c 195:0 r")));
  EXPECT_FALSE(selector("c 195:0 r").contains(selector("c 195:* r")));
  EXPECT_FALSE(selector("b 195:* r").contains(selector("c 195:0 r")));
  EXPECT_TRUE(selector("c 195:* r").overlaps(selector("c *:0 r")));
  EXPECT_FALSE(selector("c 195:0-4 r").overlaps(selector("c 195:5 r")));
}

}  // namespace
}  // namespace hf::device
