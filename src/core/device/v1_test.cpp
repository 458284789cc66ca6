#include <gtest/gtest.h>

#include "core/device/oci_rules.h"
#include "core/device/shortest.h"
#include "core/device/v1_list.h"
#include "core/device/v1_plan.h"
#include "support/random.h"

namespace hf::device {
namespace {

V1List list(const char* text) { return *parse_v1_list(text); }
RuleSet rules(std::initializer_list<const char*> lines) {
  RuleSet set;
  for (const char* line : lines) {
    set.push_back(*parse_rule(line));
  }
  return set;
}

V1List random_list(test::Random& random, std::uint32_t most) {
  V1List made;
  for (std::uint32_t count = random.below(most + 1); count > 0; --count) {
    made = after(std::move(made), {Verb::allow, random.v1_rule(4, 4)});
  }
  return made;
}

TEST(V1List, IsPrintedAsDevicesListWasRead) {
  const std::string text = "b 8:* rwm\nc *:* m\nc 1:3 rwm\nc 195:0 rw\n";
  EXPECT_EQ(to_string(list(text.c_str())), text);
  EXPECT_EQ(list("a *:* rwm\n").default_verdict, DefaultVerdict::allow);
  EXPECT_EQ(list("").exceptions.size(), 0U);
}

TEST(V1List, RefusesWhatTheKernelNeverPrints) {
  for (const char* text :
       {"c 1:3", "c 1-2:3 r", "c 195:0 rw\na *:* rwm", "a *:* r", "hello", "c 1:3 rwx", "c 4294967295:0 r"}) {
    EXPECT_FALSE(parse_v1_list(text)) << text;
  }
}

TEST(V1List, DenyRemovesBitsOnlyFromTheSameSelector) {
  const V1List before = list("c 195:* rwm\nc 1:3 rw");
  EXPECT_EQ(after(before, {Verb::deny, *parse_rule("c 195:0 rwm")}), before);
  EXPECT_EQ(after(before, {Verb::deny, *parse_rule("c 1:3 w")}), list("c 195:* rwm\nc 1:3 r"));
}

TEST(V1List, DenyOfADefaultAllowRefusesEveryRequestItTouches) {
  const V1List denies = after(list("a *:* rwm"), {Verb::deny, *parse_rule("c 195:0 w")});
  EXPECT_FALSE(meaning(denies).allows(*parse_request("c:195:0:rw")));
  EXPECT_TRUE(meaning(denies).allows(*parse_request("c:195:0:r")));
  EXPECT_TRUE(hides_exceptions(denies));
}

TEST(V1List, ParentMustCoverWithOneRule) {
  const V1List parent = list("c 195:* r\nc 195:0 w");
  EXPECT_TRUE(parent_permits(parent, *parse_rule("c 195:0 r")));
  EXPECT_FALSE(parent_permits(parent, *parse_rule("c 195:0 rw")));
}

TEST(PlanV1, WritesOnlyWhatIsMissing) {
  EXPECT_EQ(*plan_v1_grant(list("c 195:0 r"), rules({"c 195:0 rw"})),
            (V1Plan{{Verb::allow, *parse_rule("c 195:0 w")}}));
  EXPECT_EQ(*plan_v1_grant(list("c 195:* rwm"), rules({"c 195:0 rw", "c 195:255 rw"})), V1Plan{});
  EXPECT_EQ(plan_v1_grant(list(""), rules({"c 195:0-2 rw"}))->size(), 3U);
  EXPECT_FALSE(plan_v1_grant(list(""), rules({"c 195:0-100000 rw"})));
}

TEST(PlanV1, RevokesWhatItCanAndSaysWhatItCannot) {
  EXPECT_EQ(*plan_v1_revoke(list("c 195:0 rw\nc 195:255 rw\nc 1:3 rwm"), rules({"c 195:* w"})),
            (V1Plan{{Verb::deny, *parse_rule("c 195:0 w")}, {Verb::deny, *parse_rule("c 195:255 w")}}));
  const Result<V1Plan> hole = plan_v1_revoke(list("c 195:* rw"), rules({"c 195:0 rw"}));
  ASSERT_FALSE(hole);
  EXPECT_NE(hole.error().message.find("c 195:* rw"), std::string::npos);
}

// Requests of one access bit: bits of the same selector add up, so that one rule may let through more at once than two
// rules did.
constexpr Access kBits[] = {Access::read, Access::write, Access::mknod};

RuleSet random_rules(test::Random& random) {
  RuleSet rules;
  for (std::uint32_t count = 1 + random.below(4); count > 0; --count) {
    rules.push_back(random.v1_rule(4, 4));
  }
  return rules;
}

TEST(PlanV1, AGrantAddsWhatIsAskedAndNeverRemovesAnything) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    test::Random random(seed);
    const V1List before = random_list(random, 8);
    const RuleSet asked = random_rules(random);
    const Result<V1Plan> plan = plan_v1_grant(before, asked);
    ASSERT_TRUE(plan) << "seed " << seed;
    V1List state = before;
    for (const CgroupWrite& write : *plan) {
      const Table earlier = meaning(state);
      state = after(std::move(state), write);
      ASSERT_TRUE(meaning(state).contains(earlier)) << "seed " << seed << " after " << to_string(write);
    }
    ASSERT_TRUE(meaning(state).contains(askable(Table::of_rules(asked)))) << "seed " << seed;
    ASSERT_EQ(*plan_v1_grant(state, asked), V1Plan{}) << "seed " << seed;
    for (int i = 0; i < 20; ++i) {
      const Request request{random.request(4, 4).device, kBits[random.below(3)]};
      ASSERT_EQ(meaning(state).allows(request),
                meaning(before).allows(request) || Table::of_rules(asked).allows(request))
          << "seed " << seed << " " << to_string(request);
    }
  }
}

TEST(PlanV1, ARevokeRemovesWhatIsAskedAndNothingElse) {
  int planned = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    test::Random random(seed);
    const V1List before = random_list(random, 8);
    const RuleSet asked = random_rules(random);
    const Result<V1Plan> plan = plan_v1_revoke(before, asked);
    if (!plan) {
      continue;  // an exception that covers more
    }
    ++planned;
    V1List state = before;
    for (const CgroupWrite& write : *plan) {
      state = after(std::move(state), write);
    }
    for (int i = 0; i < 20; ++i) {
      const Request request{random.request(4, 4).device, kBits[random.below(3)]};
      ASSERT_EQ(meaning(state).allows(request),
                meaning(before).allows(request) && !Table::of_rules(asked).allows(request))
          << "seed " << seed << " " << to_string(request);
    }
  }
  EXPECT_GT(planned, 100);
}

TEST(OciRules, ADenyOfWriteRefusesReadWriteExceptInRunc) {
  const OciRules rules = {{Verb::allow, *parse_rule("a")}, {Verb::deny, *parse_rule("c 195:0 w")}};
  const Request both = *parse_request("c:195:0:rw");
  EXPECT_FALSE(meaning(rules, OciReading::later_wins).allows(both));
  EXPECT_FALSE(meaning(rules, OciReading::kernel).allows(both));
  EXPECT_TRUE(meaning(rules, OciReading::runc).allows(both)) << "runc's v2 filter lets O_RDWR through";
  EXPECT_FALSE(meaning(rules, OciReading::runc).allows(*parse_request("c:195:0:w")));
}

TEST(OciRules, ADenyCutsAHoleOnlyWhereLaterRulesWin) {
  const OciRules rules = {{Verb::deny, *parse_rule("a")},
                          {Verb::allow, *parse_rule("c 195:* rwm")},
                          {Verb::deny, *parse_rule("c 195:1 rwm")}};
  EXPECT_FALSE(meaning(rules, OciReading::later_wins).allows(*parse_request("c:195:1:r")));
  EXPECT_TRUE(meaning(rules, OciReading::kernel).allows(*parse_request("c:195:1:r"))) << "v1 cannot cut a hole";
  EXPECT_TRUE(meaning(rules, OciReading::kernel).allows(*parse_request("c:195:0:r")));
}

}  // namespace
}  // namespace hf::device
