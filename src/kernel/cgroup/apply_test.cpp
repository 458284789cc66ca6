#include "kernel/cgroup/apply.h"

#include <gtest/gtest.h>

#include "core/bpf/generate.h"
#include "kernel/cgroup/device_v2.h"
#include "kernel/cgroup/observe.h"
#include "support/fake_bpf.h"
#include "support/fake_host.h"

namespace hf::kernel {
namespace {

using container::Attachment;
using device::Table;
using device::Verb;

device::RuleSet rules(std::initializer_list<const char*> lines) {
  device::RuleSet set;
  for (const char* line : lines) {
    set.push_back(*device::parse_rule(line));
  }
  return set;
}

class ApplyTest : public testing::Test {
 protected:
  Program load(std::initializer_list<const char*> lines) {
    return *bpf_.load(*bpf::generate(Table::of_rules(rules(lines))));
  }
  void add(std::initializer_list<const char*> lines) {  // as another process does
    bpf_.add(*target_.v2, *bpf::generate(Table::of_rules(rules(lines))), "", 0);
  }
  bool allows(const char* question) { return bpf_.allows(*target_.v2, *device::parse_request(question)); }

  test::FakeHost machine_{
      test::Files{{"proc/self/mountinfo", "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n"}, {"cg/pod/c/", ""}}};
  Host host_ = machine_.open();
  test::FakeBpf bpf_;
  Filters filters_{host_, bpf_};
  CgroupsOfProcess target_ = *open_cgroups_at(host_, "/pod/c");
  CgroupsOfProcess pod_ = *open_cgroups_at(host_, "/pod");
};

TEST_F(ApplyTest, StartsAgainWhenAnotherProcessWasFaster) {
  const Program first = load({"c 1:3 rw"});
  const Program second = load({"c 1:5 rw"});
  ASSERT_TRUE(bpf_.attach(*target_.v2, first, AttachAlongside{}));
  bpf_.before_attach = [&] { ASSERT_TRUE(bpf_.attach(*target_.v2, second, AttachReplacing{first})); };
  const Result<Applied> applied =
      apply(filters_, target_, {Verb::allow, rules({"c 195:0 rw"})}, std::chrono::seconds(10));
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_EQ(applied->attempts, 2);
  EXPECT_TRUE(allows("c:195:0:rw"));
  EXPECT_TRUE(allows("c:1:5:rw")) << "the rules of the other process are kept";
  EXPECT_FALSE(allows("c:1:3:rw")) << "and none of the old rules";
}

TEST_F(ApplyTest, LoadsTheSameCodeOnce) {
  ASSERT_TRUE(bpf_.attach(*target_.v2, load({"c 1:3 rw"}), AttachAlongside{}));
  ASSERT_TRUE(apply(filters_, target_, {Verb::allow, rules({"c 195:0 rw"})}));
  ASSERT_TRUE(apply(filters_, target_, {Verb::deny, rules({"c 195:0 rw"})}));
  const int loads = bpf_.loads;
  ASSERT_TRUE(apply(filters_, target_, {Verb::allow, rules({"c 195:0 rw"})}));
  EXPECT_EQ(bpf_.loads, loads);
}

TEST_F(ApplyTest, RevokeAttachesAProgramWhereThereIsNone) {
  ASSERT_TRUE(apply(filters_, target_, {Verb::deny, rules({"c 195:* rwm"})}));
  EXPECT_FALSE(allows("c:195:0:r"));
  EXPECT_TRUE(allows("c:194:0:r"));
}

TEST_F(ApplyTest, NeverChangesTheRootCgroup) {
  const CgroupsOfProcess root = *open_cgroups_at(host_, "/cg");
  const Result<Applied> applied = apply(filters_, root, {Verb::deny, rules({"c 195:* rwm"})});
  ASSERT_FALSE(applied);
  EXPECT_NE(applied.error().message.find("root cgroup"), std::string::npos);
}

TEST_F(ApplyTest, NamesTheGateAboveThatRefusesAndChangesNothing) {
  ASSERT_TRUE(bpf_.attach(*pod_.v2, load({"c 1:3 rw"}), AttachAlongside{}));
  ASSERT_TRUE(bpf_.attach(*target_.v2, load({"c 1:3 rw"}), AttachAlongside{}));
  const int loads = bpf_.loads;
  const Result<Applied> applied = apply(filters_, target_, {Verb::allow, rules({"c 195:0 rw"})});
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().reason, Reason::refused_above);
  EXPECT_NE(applied.error().message.find("/cg/pod"), std::string::npos) << applied.error().message;
  EXPECT_EQ(bpf_.loads, loads);
}

TEST_F(ApplyTest, LeavesAnUnreadableProgramAlone) {
  const bpf::Code reads_a_map =
      *bpf::parse_hex("18110000db000000\n0000000000000000\n8500000070110500\n5700000001000000\n9500000000000000\n");
  ASSERT_TRUE(bpf_.attach(*target_.v2, *bpf_.load(reads_a_map), AttachAlongside{}));
  const Result<Applied> applied = apply(filters_, target_, {Verb::allow, rules({"c 195:0 rw"})});
  ASSERT_FALSE(applied);
  EXPECT_NE(applied.error().message.find("nothing was changed"), std::string::npos) << applied.error().message;
}

TEST_F(ApplyTest, ReportsAProgramTheKernelHidesAsAnUnreadableGate) {
  ASSERT_TRUE(bpf_.attach(*target_.v2, load({"c 1:3 rw"}), AttachAlongside{}));
  bpf_.forbids_opening = true;
  const Result<container::Observed> observed = observe(filters_, target_);
  ASSERT_TRUE(observed) << observed.error().message;
  ASSERT_EQ(observed->gates.size(), 1U);
  EXPECT_FALSE(observed->gates[0].meaning);
  EXPECT_EQ(container::judge(*observed, *device::parse_request("c:1:3:r")).kind, container::Answer::Kind::unknown);
  EXPECT_FALSE(apply(filters_, target_, {Verb::allow, rules({"c 195:0 rw"})}));
}

TEST_F(ApplyTest, ReplacesAnExclusiveProgramInPlace) {
  ASSERT_TRUE(bpf_.attach(*target_.v2, load({"c 1:3 rw"}), AttachAlone{}));
  ASSERT_TRUE(apply(filters_, target_, {Verb::allow, rules({"c 195:0 rw"})}));
  EXPECT_EQ(bpf_.query(*target_.v2, Reach::own)->attachment, Attachment::single);
  EXPECT_TRUE(allows("c:195:0:rw"));
}

TEST_F(ApplyTest, DetachesItsEarlierProgramWhenTheNextOneMeansTheSame) {
  add({"c 1:3 rw"});
  ASSERT_TRUE(apply(filters_, target_, {Verb::allow, rules({"c 195:0 rw"})}));
  for (int reload = 0; reload < 100; ++reload) {  // more often than a cgroup can have programs
    add({"c 1:3 rw"});
    EXPECT_FALSE(allows("c:195:0:rw"));
    ASSERT_TRUE(apply(filters_, target_, {Verb::allow, rules({"c 195:0 rw"})}));
    ASSERT_EQ(bpf_.query(*target_.v2, Reach::own)->ids.size(), 1U);
    EXPECT_TRUE(allows("c:195:0:rw"));
    EXPECT_TRUE(allows("c:1:3:rw"));
    EXPECT_FALSE(allows("c:1:5:rw"));
  }
}

TEST_F(ApplyTest, NeverDetachesAForeignProgramBecauseItsOwnerMayDetachTheOthers) {
  add({"c 1:3 rw", "c 195:0 rw"});
  add({"c 1:3 rw"});  // the new program of a runtime that detaches the old one next
  ASSERT_TRUE(apply(filters_, target_, {Verb::allow, rules({"c 195:0 rw"})}));
  const AttachedPrograms attached = *bpf_.query(*target_.v2, Reach::own);
  ASSERT_EQ(attached.ids.size(), 2U);
  ASSERT_TRUE(bpf_.detach(*target_.v2, *bpf_.open(attached.ids.front()), 0));
  EXPECT_TRUE(allows("c:195:0:rw"));
  EXPECT_FALSE(allows("c:1:5:rw"));
}

TEST_F(ApplyTest, KeepsAProgramThatRefusesMoreAndAddsTheGrant) {
  ASSERT_TRUE(bpf_.attach(*target_.v2, load({"c 1:3 rw", "c 195:0 rw"}), AttachAlongside{}));
  ASSERT_TRUE(bpf_.attach(*target_.v2, load({"c 1:5 rw"}), AttachAlongside{}));
  ASSERT_TRUE(apply(filters_, target_, {Verb::allow, rules({"c 195:0 rw"})}));
  EXPECT_EQ(bpf_.query(*target_.v2, Reach::own)->ids.size(), 2U);
  EXPECT_TRUE(allows("c:195:0:rw"));
  EXPECT_FALSE(allows("c:1:3:rw")) << "the second program still refuses it";
}

}  // namespace
}  // namespace hf::kernel
