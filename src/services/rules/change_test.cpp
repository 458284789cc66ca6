#include "services/rules/change.h"

#include "services/rules/rules_test.h"

namespace hf::rules {
namespace {

class ChangeTest : public RulesTest {
 protected:
  Result<report::ChangeReport> change(device::Verb verb, const char* rule, RunMode mode,
                                      const char* target = "pid:100") {
    return rules::change(opener_, {target, *parse_target(target)}, {verb, {*device::parse_rule(rule)}}, mode);
  }
};

TEST_F(ChangeTest, ADryRunPlansAndChangesNothing) {
  attach("/pod/c", {"c 1:3 rw"});
  const Result<report::ChangeReport> planned = change(device::Verb::allow, "c 195:0 rw", RunMode::dry_run);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_EQ(planned->outcome, report::Outcome::planned);
  EXPECT_EQ(planned->plan.steps.size(), 1U);
  EXPECT_EQ(ask("c:195:0:rw").kind, container::Answer::Kind::deny);
}

TEST_F(ChangeTest, AGrantIsProvenAndKeepsTheRest) {
  attach("/pod/c", {"c 1:3 rw"});
  const Result<report::ChangeReport> done = change(device::Verb::allow, "c 195:0 rw", RunMode::carry_out);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->outcome, report::Outcome::done);
  EXPECT_EQ(ask("c:195:0:rw").kind, container::Answer::Kind::allow);
  EXPECT_EQ(ask("c:1:3:rw").kind, container::Answer::Kind::allow);
  EXPECT_EQ(ask("c:195:1:rw").kind, container::Answer::Kind::deny);
  EXPECT_EQ(change(device::Verb::allow, "c 195:0 rw", RunMode::carry_out)->outcome, report::Outcome::already);
}

TEST_F(ChangeTest, ARevokeTakesOnlyWhatItNames) {
  attach("/pod/c", {"c 1:3 rw", "c 195:* rw"});
  ASSERT_TRUE(change(device::Verb::deny, "c 195:0 rw", RunMode::carry_out));
  EXPECT_EQ(ask("c:195:0:rw").kind, container::Answer::Kind::deny);
  EXPECT_EQ(ask("c:195:1:rw").kind, container::Answer::Kind::allow);
}

TEST_F(ChangeTest, AGateAboveIsNamedAndNotWidened) {
  attach("/pod", {"c 1:3 rw"});
  attach("/pod/c", {"c 1:3 rw"});
  const Result<report::ChangeReport> refused = change(device::Verb::allow, "c 195:0 rw", RunMode::carry_out);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, Reason::refused_above);
  EXPECT_NE(refused.error().message.find("/cg/pod"), std::string::npos) << refused.error().message;
  EXPECT_EQ(ask("c:195:0:rw").kind, container::Answer::Kind::deny);
}

TEST_F(ChangeTest, ProgramsAndFilesCannotBeChanged) {
  for (const char* target : {"program:1", "file:/x"}) {
    const Result<report::ChangeReport> refused = change(device::Verb::allow, "c 195:0 rw", RunMode::carry_out, target);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, std::errc::invalid_argument);
    EXPECT_NE(refused.error().message.find(target), std::string::npos) << refused.error().message;
  }
}

}  // namespace
}  // namespace hf::rules
