#include "services/rules/change.h"

#include <gtest/gtest.h>

#include "core/bpf/generate.h"
#include "services/rules/inspect.h"
#include "support/fake_bpf.h"
#include "support/fake_host.h"

namespace hf::rules {
namespace {

class NoProber : public kernel::NodeProber {
 public:
  Result<std::vector<container::NodeView>> probe(const kernel::ProbeRequest& /*request*/) override {
    return fail(std::errc::not_supported, "probe");
  }
  Result<std::vector<container::NodeView>> look_up(const kernel::ProbeRequest& request) override {
    return probe(request);
  }
};

class ChangeTest : public testing::Test {
 protected:
  void attach(const char* path, std::initializer_list<const char*> lines) {
    device::RuleSet rules;
    for (const char* line : lines) {
      rules.push_back(*device::parse_rule(line));
    }
    const kernel::CgroupsOfProcess cgroups = *kernel::open_cgroups_at(host_, path);
    bpf_.add(*cgroups.v2, *bpf::generate(device::Table::of_rules(rules)), "", 0);
  }

  Result<report::ChangeReport> change(device::Verb verb, const char* rule, RunMode mode,
                                      const char* target = "pid:100") {
    return rules::change(opener_, {target, *parse_target(target)}, {verb, {*device::parse_rule(rule)}}, mode);
  }

  container::Answer ask(const char* question) {
    Inspection inspection = *Inspection::open(opener_, {"pid:100", *parse_target("pid:100")});
    return inspection.ask(*device::parse_request(question));
  }

  test::FakeHost files_{
      test::Files{{"proc/self/mountinfo", "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n"},
                  {"cg/pod/c/cgroup.procs", "100\n"},
                  {"proc/100/stat", "100 (app) S 1 100 100 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 5000 1 1 1\n"},
                  {"proc/100/cgroup", "0::/pod/c\n"}}};
  kernel::Host host_ = files_.open();
  test::FakeBpf bpf_;
  kernel::Filters filters_{host_, bpf_};
  NoProber prober_;
  host::HostOpener opener_{host::OpenHost{host_, filters_, prober_}};
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

TEST(Target, IsParsedByItsPrefix) {
  EXPECT_EQ(std::get<container::Pid>(*parse_target("pid:7")).value, 7);
  EXPECT_EQ(std::get<CgroupDirectory>(*parse_target("cgroup:/a/b")).path, "/a/b");
  EXPECT_EQ(std::get<container::ProgramId>(*parse_target("program:9")).value, 9U);
  EXPECT_EQ(std::get<FilePath>(*parse_target("file:x.json")).path, "x.json");
  for (const char* text :
       {"pid:", "pid:x", "pid:0", "pid:-1", "program:", "program:x", "cgroup:", "file:", "web", ""}) {
    EXPECT_FALSE(parse_target(text)) << text;
  }
}

}  // namespace
}  // namespace hf::rules
