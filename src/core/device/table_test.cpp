#include "core/device/table.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "core/device/compare.h"
#include "core/device/shortest.h"
#include "support/random.h"

namespace hf::device {
namespace {

Table table(std::initializer_list<const char*> lines) {
  RuleSet rules;
  for (const char* line : lines) {
    rules.push_back(*parse_rule(line));
  }
  return Table::of_rules(rules);
}

std::vector<std::string> text(const RuleSet& rules) {
  std::vector<std::string> lines;
  for (const Rule& rule : rules) {
    lines.push_back(to_string(rule));
  }
  return lines;
}

bool matches(const Selector& selector, const Device& device) {
  return selector.kind.value_or(device.kind) == device.kind && selector.major.value_or(Span()).contains(device.major) &&
         selector.minor.value_or(Span()).contains(device.minor);
}

bool some_rule_covers(const RuleSet& rules, const Request& request) {
  return std::ranges::any_of(rules, [&](const Rule& rule) {
    return matches(rule.selector, request.device) && rule.allowed().allows(request.access);
  });
}

TEST(Table, MeansWhatTheRulesSay) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    test::Random random(seed);
    const RuleSet rules = random.rules(12, 6, 6);
    const Table meaning = Table::of_rules(rules);
    for (int i = 0; i < 200; ++i) {
      const Request request = random.request(8, 14);
      ASSERT_EQ(meaning.allows(request), some_rule_covers(rules, request))
          << "seed " << seed << " " << to_string(request);
    }
  }
}

TEST(Table, IsCanonical) {
  EXPECT_EQ(table({"c 1:0-3 rw", "c 1:4-9 rw"}), table({"c 1:0-9 rw"}));
  EXPECT_EQ(table({"c 1:* r", "c 0:* r", "c 2-*:* r"}), table({"c *:* r"}));
  EXPECT_EQ(table({"c 1:3 rw", "c 1:3 r"}), table({"c 1:3 rw"}));
  EXPECT_NE(table({"c 1:3 r", "c 1:3 w"}), table({"c 1:3 rw"}));
  EXPECT_EQ(table({"a"}), Table::everything());
  EXPECT_EQ(table({}), Table());
}

TEST(Table, AlgebraIsPointwise) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    test::Random random(seed);
    const Table a = Table::of_rules(random.rules(8, 5, 5));
    const Table b = Table::of_rules(random.rules(8, 5, 5));
    ASSERT_EQ(a - b, a & (Table::everything() - b));
    ASSERT_EQ((a - b) | (a & b), a);
    ASSERT_TRUE((a | b).contains(a));
    ASSERT_EQ(a.contains(b), (a | b) == a);
    for (int i = 0; i < 50; ++i) {
      const Request request = random.request(7, 7);
      ASSERT_EQ((a | b).allows(request), a.allows(request) || b.allows(request));
      ASSERT_EQ((a & b).allows(request), a.allows(request) && b.allows(request));
      ASSERT_EQ((a - b).allows(request), a.allows(request) && !b.allows(request));
    }
  }
}

TEST(ShortestRules, AreThoseAPersonWouldWrite) {
  EXPECT_EQ(text(shortest_rules(Table::everything())), (std::vector<std::string>{"a *:* rwm"}));
  EXPECT_EQ(text(shortest_rules(Table())), std::vector<std::string>{});
  EXPECT_EQ(text(shortest_rules(table({"c 195:255 rw", "c *:* m", "b *:* m", "c 1:3 rwm", "c 195:0 rw"}))),
            (std::vector<std::string>{"c *:* m", "b *:* m", "c 1:3 rwm", "c 195:0 rw", "c 195:255 rw"}));
  EXPECT_EQ(text(shortest_rules(table({"c 195:0 rw", "c 195:1 rw", "c 195:2 rw"}))),
            (std::vector<std::string>{"c 195:0-2 rw"}));
  EXPECT_EQ(text(shortest_rules(table({"c *:7 rw", "c 195:* r"}))),
            (std::vector<std::string>{"c *:7 rw", "c 195:* r"}));
  EXPECT_EQ(text(shortest_rules(table({"c 1:3 r", "c 1:3 w"}))), (std::vector<std::string>{"c 1:3 r", "c 1:3 w"}));
}

TEST(ShortestRules, SayExactlyWhereTwoBitsPassOnlyTogether) {
  const Table faulty_deny =
      Table::everything() -
      Table::of_boxes(std::vector<Box>{{Kind::character, {195, 195}, {0, 0}, AccessSet::within(Access::write)}});
  const RuleSet rules = shortest_rules(faulty_deny);
  const auto together = std::ranges::find(rules, Match::exactly, &Rule::match);
  ASSERT_NE(together, rules.end());
  EXPECT_EQ(to_string(*together), "c 195:0 rw exactly");
  EXPECT_EQ(askable(Table::of_rules(rules)), askable(faulty_deny));
}

TEST(ShortestRules, MeanTheTableAndAreNoLongerThanItsSource) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    test::Random random(seed);
    const RuleSet rules = random.rules(14, 5, 5);
    const Table meaning = Table::of_rules(rules);
    const RuleSet shortest = shortest_rules(meaning);
    ASSERT_EQ(Table::of_rules(shortest), meaning) << "seed " << seed;
    ASSERT_LE(shortest.size(), std::max<std::size_t>(rules.size(), 1)) << "seed " << seed;
  }
}

TEST(ShortestRules, KeepTheMeaningOfAnyDifference) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    test::Random random(seed);
    const Table odd = Table::of_rules(random.rules(8, 4, 4)) - Table::of_rules(random.rules(8, 4, 4));
    ASSERT_EQ(askable(Table::of_rules(shortest_rules(odd))), askable(odd)) << "seed " << seed;
  }
}

TEST(Compare, NamesTheBitsThatTheOtherSideLacks) {
  const Difference difference =
      compare(table({"c 195:0 rw", "c 1:3 rwm"}), table({"c 195:0 r", "c 10:200 rw", "c 1:3 rwm"}));
  EXPECT_EQ(text(difference.only_left), (std::vector<std::string>{"c 195:0 w"}));
  EXPECT_EQ(text(difference.only_right), (std::vector<std::string>{"c 10:200 rw"}));
  EXPECT_TRUE(compare(table({"c 1:3 rw"}), table({"c 1:3 rw"})).none());
}

TEST(Compare, IgnoresRequestsThatTheKernelNeverMakes) {
  const Box any_overlap{Kind::character, {195, 195}, {0, 0}, AccessSet::touching(Access::read | Access::write)};
  EXPECT_TRUE(compare(Table::of_boxes({&any_overlap, 1}), table({"c 195:0 rw"})).none());
}

}  // namespace
}  // namespace hf::device
