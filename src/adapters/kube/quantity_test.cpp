#include "adapters/kube/quantity.h"

#include <utility>

#include <gtest/gtest.h>

namespace hf::kube {
namespace {

TEST(Quantity, ThereAndBack) {
  for (const auto& [bytes, text] : {std::pair(std::uint64_t(0), "0"),
                                    {std::uint64_t(1023), "1023"},
                                    {std::uint64_t(81559) << 20U, "81559Mi"},
                                    {std::uint64_t(3) << 40U, "3Ti"}}) {
    EXPECT_EQ(render_quantity(bytes), text);
    EXPECT_EQ(parse_quantity(text), bytes);
  }
  EXPECT_EQ(parse_quantity("2k"), 2000U);
  for (const char* text : {"", "Gi", "1Xi", "-1", "1.5Gi", "99999999999999999999", "99999999999Ti"}) {
    EXPECT_FALSE(parse_quantity(text)) << text;
  }
}

}  // namespace
}  // namespace hf::kube
