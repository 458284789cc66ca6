#include "core/base/version.h"

#include <gtest/gtest.h>

namespace hf {
namespace {

TEST(Version, IsOrderedAsReleasesAre) {
  const auto order = {"1.0.0-rc5",  "1.0.0~rc93", "1.0.0-rc95", "1.0.0", "1.1.3",
                      "v1.1.5+ds1", "1.1.15",     "1.3.6",      "2.0"};
  std::optional<Version> last;
  for (const char* text : order) {
    const std::optional<Version> version = parse_version(text);
    ASSERT_TRUE(version) << text;
    EXPECT_TRUE(!last || *last < *version) << text;
    last = version;
  }
  EXPECT_EQ(parse_version("1.1.5+ds1"), parse_version("1.1.5"));
}

TEST(Version, IsAbsentWhereTheTextBeginsWithNoNumber) {
  for (const char* text : {"", "x", "v", ".1", "unknown"}) {
    EXPECT_FALSE(parse_version(text)) << text;
  }
}

}  // namespace
}  // namespace hf
