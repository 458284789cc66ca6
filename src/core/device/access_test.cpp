#include "core/device/access.h"

#include <gtest/gtest.h>

namespace hf::device {
namespace {

TEST(ParseAccess, AcceptsBitsInAnyOrder) {
  EXPECT_EQ(*parse_access("mr"), Access::mknod | Access::read);
  EXPECT_EQ(*parse_access(""), Access::none);
}

TEST(ParseAccess, RefusesWhatTheKernelWouldRefuse) {
  for (const char* text : {"x", "rr", "r w", "RW"}) {
    EXPECT_FALSE(parse_access(text)) << text;
  }
}

TEST(AccessText, IsParsedBackToTheSameAccess) {
  for (unsigned bits = 0; bits <= unsigned(Access::all); ++bits) {
    EXPECT_EQ(*parse_access(to_string(Access(bits))), Access(bits));
  }
  EXPECT_EQ(to_string(Access::all), "rwm");
}

TEST(AccessSet, AllowGrantsEverySubsetAndDenyRefusesEverythingItTouches) {
  const AccessSet within = AccessSet::within(Access::read | Access::write);
  EXPECT_TRUE(within.allows(Access::read));
  EXPECT_TRUE(within.allows(Access::read | Access::write));
  EXPECT_FALSE(within.allows(Access::mknod));
  EXPECT_FALSE(within.allows(Access::all));
  const AccessSet touching = AccessSet::touching(Access::write);
  EXPECT_TRUE(touching.allows(Access::read | Access::write));
  EXPECT_FALSE(touching.allows(Access::read));
}

TEST(AccessSet, TwoBitsInSeparateRulesDoNotAllowBothTogether) {
  const AccessSet apart = AccessSet::within(Access::read) | AccessSet::within(Access::write);
  EXPECT_FALSE(apart.allows(Access::read | Access::write));
}

}  // namespace
}  // namespace hf::device
