#include "services/rules/inspect.h"

#include <fstream>

#include "services/rules/rules_test.h"

namespace hf::rules {
namespace {

using Kind = container::Answer::Kind;

device::Table gpus() {
  const device::RuleSet rules = {*device::parse_rule("c 195:* rw")};
  return device::Table::of_rules(rules);
}

class InspectTest : public RulesTest {
 protected:
  void SetUp() override {
    attach("/pod", {"c 1:3 rw", "c 195:* rw"});       // program 1
    attach("/pod/c", {"c 195:* rw", "c 10:200 rw"});  // program 2
  }
};

TEST_F(InspectTest, AsksEveryGateBetweenTheTargetAndTheRoot) {
  struct Case {
    const char* target;
    const char* question;
    Kind answer;
    const char* gate;  // the one that refuses
  };
  for (const auto& [target, question, answer, gate] : {
           Case{"pid:100", "c:195:0:rw", Kind::allow, ""},
           Case{"pid:100", "c:1:3:rw", Kind::deny, "/cg/pod/c"},
           Case{"pid:100", "c:10:200:rw", Kind::deny, "/cg/pod"},
           Case{"cgroup:/pod/c", "c:1:3:rw", Kind::deny, "/cg/pod/c"},
           Case{"cgroup:/pod", "c:1:3:rw", Kind::allow, ""},
           Case{"cgroup:/pod", "c:10:200:rw", Kind::deny, "/cg/pod"},
           Case{"program:1", "c:1:3:rw", Kind::allow, ""},
           Case{"program:2", "c:1:3:rw", Kind::deny, ""},
           Case{"program:2", "c:10:200:rw", Kind::allow, ""},
       }) {
    const container::Answer given = ask(question, target);
    EXPECT_EQ(given.kind, answer) << target << " " << question;
    EXPECT_NE(given.detail.find(gate), std::string::npos) << target << " " << question << ": " << given.detail;
  }
}

// Kernel: no gate is asked for a whiteout.
TEST_F(InspectTest, TheDeviceZeroIsAllowedInEveryCgroup) {
  for (const auto& [question, answer] : {std::pair("c:0:0:m", Kind::allow), std::pair("c:0:0:rw", Kind::allow),
                                         std::pair("b:0:0:rw", Kind::allow), std::pair("b:0:0:m", Kind::deny)}) {
    EXPECT_EQ(ask(question).kind, answer) << question;
  }
  EXPECT_EQ(ask("c:0:0:rw", "program:2").kind, Kind::deny) << "a program by itself is asked as it is";
}

TEST_F(InspectTest, ShowsTheRulesThatAreInForce) {
  report::TargetRules rules = inspect("pid:100")->rules();
  EXPECT_EQ(rules.target, "pid:100");
  EXPECT_EQ(rules.gates.size(), 2U);
  EXPECT_TRUE(rules.effective.exact) << rules.effective.why;
  EXPECT_EQ(rules.source, report::Source::read);
  EXPECT_EQ(rules.effective.table, gpus());
}

TEST_F(InspectTest, ReadsAProgramFromAFile) {
  const std::string path = files_.root() + "/program";
  std::ofstream(path) << bpf::to_hex(*bpf::generate(gpus()));
  EXPECT_EQ(ask("c:195:0:rw", "file:" + path).kind, Kind::allow);
  EXPECT_EQ(ask("c:1:3:rw", "file:" + path).kind, Kind::deny);
  const report::TargetRules rules = inspect("file:" + path)->rules();
  ASSERT_EQ(rules.gates.size(), 1U);
  EXPECT_EQ(rules.gates.front().where, "file:" + path);
  EXPECT_EQ(rules.effective.table, gpus());
}

TEST_F(InspectTest, NamesTheFileThatIsNoProgram) {
  const std::string path = files_.root() + "/program";
  std::ofstream(path) << "no digits";
  const Result<Inspection> inspection = inspect("file:" + path);
  ASSERT_FALSE(inspection);
  EXPECT_TRUE(inspection.error().message.starts_with(path + ": ")) << inspection.error().message;
}

TEST_F(InspectTest, FailsForTargetsThatAreNotThere) {
  for (const std::string target : {"pid:101", "cgroup:/absent", "program:99", "file:/absent/program"}) {
    EXPECT_FALSE(inspect(target)) << target;
  }
}

TEST_F(InspectTest, ListsTheGatesOfTheHost) {
  const Result<report::HostRules> rules = inspect_host(opener_);
  ASSERT_TRUE(rules) << rules.error().message;
  EXPECT_EQ(rules->layout, "v2");
  ASSERT_EQ(rules->gates.size(), 2U);
  EXPECT_TRUE(rules->gates[0].where.ends_with("/pod")) << "parents first: " << rules->gates[0].where;
  EXPECT_EQ(rules->too_deep, 0U);
}

TEST_F(InspectTest, OpensOnlyCgroupsForAChange) {
  for (const Target& target : {Target(container::ProgramId{1}), Target(FilePath{"/x"})}) {
    const Result<kernel::CgroupsPtr> cgroups = open_own_cgroups(host_, target);
    ASSERT_FALSE(cgroups);
    EXPECT_EQ(cgroups.error().code, std::errc::invalid_argument);
  }
  const Result<kernel::CgroupsPtr> cgroups = open_own_cgroups(host_, container::Pid{100});
  ASSERT_TRUE(cgroups) << cgroups.error().message;
  ASSERT_TRUE((*cgroups)->v2);
  EXPECT_EQ((*cgroups)->v2->path.text, "/pod/c");
}

}  // namespace
}  // namespace hf::rules
