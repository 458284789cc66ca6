// Tests of device programs on real v2 cgroups: reading, replacing and locking them, links, and opaque programs.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>

#include <bpf/bpf.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/bpf/generate.h"
#include "core/container/gate/change.h"
#include "kernel/cgroup/apply.h"
#include "kernel/cgroup/device_v1.h"
#include "kernel/cgroup/device_v2.h"
#include "kernel/cgroup/exchange_note.h"
#include "kernel/cgroup/observe.h"
#include "kernel/container/probe.h"
#include "kernel_test.h"

namespace hf::test {
namespace {

using container::Attachment;
using container::Change;
using container::Gate;
using container::Hierarchy;
using container::Observed;
using device::Table;
using device::Verb;

class FilterTest : public KernelTest {
 protected:
  kernel::Program load(const Table& table) { return *bpf_->load(*bpf::generate(table)); }

  Observed observe(const ScratchCgroup& cgroup) {
    const Result<Observed> observed = kernel::observe(*filters_, cgroup.open());
    EXPECT_TRUE(observed) << observed.error().message;
    return *observed;
  }

  Result<kernel::Applied> grant(const ScratchCgroup& cgroup, std::initializer_list<const char*> lines) {
    return kernel::apply(*filters_, cgroup.open(), Change{Verb::allow, rules(lines)});
  }

  bool kernel_allows(const ScratchCgroup& cgroup, const char* question) {
    return ask_kernel({&cgroup}, {*device::parse_request(question)}, nodes_).front();
  }

  NodeDirectory nodes_;
};

TEST_F(FilterTest, EveryGateUpToTheRootCountsAndTheOneThatRefusesIsNamed) {
  const ScratchCgroup parent(*host_, Hierarchy::v2);
  const ScratchCgroup child(*host_, Hierarchy::v2, parent.directory());
  ASSERT_TRUE(bpf_->attach(parent.cgroup(), load(table({"c 1:3 rw", "c 195:0 rw"})), kernel::AttachAlongside{}));
  ASSERT_TRUE(bpf_->attach(child.cgroup(), load(table({"c 1:3 rw", "c 195:1 rw"})), kernel::AttachAlongside{}));
  const Observed observed = observe(child);
  ASSERT_EQ(observed.gates.size(), 2U);
  EXPECT_TRUE(observed.gates[0].is_own);
  EXPECT_FALSE(observed.gates[1].is_own);
  EXPECT_EQ(observed.gates[0].cgroup, child.cgroup().path);
  EXPECT_EQ(observed.gates[1].cgroup, parent.cgroup().path);
  EXPECT_EQ(container::effective(observed).table, table({"c 1:3 rw"}));
  const container::Answer answer = container::judge(observed, *device::parse_request("c:195:1:r"));
  EXPECT_EQ(answer.kind, container::Answer::Kind::deny);
  EXPECT_NE(answer.detail.find(parent.directory() + " program:"), std::string::npos) << answer.detail;
  EXPECT_FALSE(kernel_allows(child, "c:195:1:r"));
}

TEST_F(FilterTest, ProgramsAreDescribed) {
  const ScratchCgroup cgroup(*host_, Hierarchy::v2);
  const kernel::Program program = load(table({"c 1:3 rw"}));
  ASSERT_TRUE(bpf_->attach(cgroup.cgroup(), program, kernel::AttachAlongside{}));
  const Gate gate = observe(cgroup).gates.front();
  EXPECT_EQ(gate.owner, "holdfast");
  EXPECT_EQ(gate.program->id, program.id);
  EXPECT_EQ(gate.program->uid, 0U);
  EXPECT_NEAR(double(*gate.program->loaded_at), double(::time(nullptr)), 5);
  EXPECT_EQ(gate.program->attachment, Attachment::several);
}

TEST_F(FilterTest, AnOverridableGateGivesWayAsTheKernelSays) {
  const ScratchCgroup parent(*host_, Hierarchy::v2);
  const ScratchCgroup child(*host_, Hierarchy::v2, parent.directory());
  ASSERT_TRUE(
      bpf_->attach(parent.cgroup(), load(table({"c 195:0 rw"})), kernel::AttachAlone{Attachment::overridable, 0}));
  EXPECT_EQ(container::effective(observe(child)).table, table({"c 195:0 rw"}));
  ASSERT_TRUE(
      bpf_->attach(child.cgroup(), load(table({"c 195:1 rw"})), kernel::AttachAlone{Attachment::overridable, 0}));
  EXPECT_EQ(container::effective(observe(child)).table, table({"c 195:1 rw"}));
  EXPECT_TRUE(kernel_allows(child, "c:195:1:r"));
  EXPECT_FALSE(kernel_allows(child, "c:195:0:r"));
}

TEST_F(FilterTest, GrantWidensEveryOwnProgramAndNothingElse) {
  const ScratchCgroup cgroup(*host_, Hierarchy::v2);
  ASSERT_TRUE(bpf_->attach(cgroup.cgroup(), load(table({"c 1:3 rw", "c 195:0 rw"})), kernel::AttachAlongside{}));
  ASSERT_TRUE(bpf_->attach(cgroup.cgroup(), load(table({"c 1:3 rw"})), kernel::AttachAlongside{}));
  const Result<kernel::Applied> applied = grant(cgroup, {"c 195:0 rw"});
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_TRUE(applied->holds);
  EXPECT_EQ(applied->plan.steps.size(), 2U) << "one is widened, and the other, which is ours, becomes redundant";
  EXPECT_EQ(container::effective(applied->after).table, table({"c 1:3 rw", "c 195:0 rw"}));
  EXPECT_TRUE(kernel_allows(cgroup, "c:195:0:rw"));
  EXPECT_FALSE(kernel_allows(cgroup, "c:195:1:r"));
  EXPECT_TRUE(grant(cgroup, {"c 195:0 rw"})->plan.steps.empty()) << "a second time there is nothing to do";
}

TEST_F(FilterTest, GrantNeverWidensAGateAbove) {
  const ScratchCgroup parent(*host_, Hierarchy::v2);
  const ScratchCgroup child(*host_, Hierarchy::v2, parent.directory());
  ASSERT_TRUE(bpf_->attach(parent.cgroup(), load(table({"c 1:3 rw"})), kernel::AttachAlongside{}));
  ASSERT_TRUE(bpf_->attach(child.cgroup(), load(table({"c 1:3 rw"})), kernel::AttachAlongside{}));
  const Result<kernel::Applied> applied = grant(child, {"c 195:0 rw"});
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().reason, Reason::refused_above);
  EXPECT_NE(applied.error().message.find(parent.directory()), std::string::npos);
  EXPECT_EQ(*observe(child).gates[0].meaning, table({"c 1:3 rw"})) << "nothing was changed";
}

TEST_F(FilterTest, ReplaceIsCompareAndSwap) {
  const ScratchCgroup cgroup(*host_, Hierarchy::v2);
  const kernel::Program first = load(table({"c 1:3 rw"}));
  const kernel::Program second = load(table({"c 1:5 rw"}));
  ASSERT_TRUE(bpf_->attach(cgroup.cgroup(), first, kernel::AttachAlongside{}));
  ASSERT_TRUE(bpf_->attach(cgroup.cgroup(), second, kernel::AttachReplacing{first}));
  const Result<container::ProgramId> late =
      kernel::replace_program(*filters_, cgroup.cgroup(), first.id, *bpf::generate(table({"c 1:7 rw"})));
  ASSERT_FALSE(late);
  EXPECT_TRUE(kernel::is_overtaken(late.error())) << late.error().message;
  EXPECT_EQ(*observe(cgroup).gates[0].meaning, table({"c 1:5 rw"}));
}

TEST_F(FilterTest, GrantReplacesAProgramAttachedAlone) {
  const ScratchCgroup cgroup(*host_, Hierarchy::v2);
  ASSERT_TRUE(bpf_->attach(cgroup.cgroup(), load(table({"c 1:3 rw"})), kernel::AttachAlone{}));
  const Result<kernel::Applied> applied = grant(cgroup, {"c 195:0 rw"});
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_EQ(applied->after.gates[0].program->attachment, Attachment::single);
  EXPECT_EQ(container::effective(applied->after).table, table({"c 1:3 rw", "c 195:0 rw"}));
}

TEST_F(FilterTest, AProgramAttachedAloneIsReplacedOnlyIfItIsUnchanged) {
  const ScratchCgroup cgroup(*host_, Hierarchy::v2);
  ASSERT_TRUE(bpf_->attach(cgroup.cgroup(), load(table({"c 1:3 rw"})), kernel::AttachAlone{}));
  const std::uint64_t revision = bpf_->query(cgroup.cgroup(), kernel::Reach::own)->revision;
  if (revision == 0) {
    GTEST_SKIP() << "this kernel counts no revisions (6.17 and later do)";
  }
  ASSERT_TRUE(bpf_->attach(cgroup.cgroup(), load(table({"c 1:5 rw"})), kernel::AttachAlone{}));
  const Result<void> late =
      bpf_->attach(cgroup.cgroup(), load(table({"c 1:7 rw"})), kernel::AttachAlone{Attachment::single, revision});
  ASSERT_FALSE(late);
  EXPECT_TRUE(kernel::is_overtaken(late.error())) << late.error().message;
}

TEST_F(FilterTest, GrantReplacesAProgramHeldByALink) {
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const kernel::Cgroup cgroup = scratch.cgroup();
  const kernel::Program program = load(table({"c 1:3 rw"}));
  const kernel::Fd link(::bpf_link_create(program.fd.get(), cgroup.directory.get(), BPF_CGROUP_DEVICE, nullptr));
  ASSERT_TRUE(link) << std::strerror(errno);
  const Result<kernel::Applied> applied = grant(scratch, {"c 195:0 rw"});
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_EQ(container::effective(applied->after).table, table({"c 1:3 rw", "c 195:0 rw"}));
  EXPECT_TRUE(kernel_allows(scratch, "c:195:0:rw"));
}

TEST_F(FilterTest, RevokeRefusesEveryRequestItOverlaps) {
  const ScratchCgroup cgroup(*host_, Hierarchy::v2);
  const Result<kernel::Applied> applied = kernel::apply(*filters_, cgroup.open(), {Verb::deny, rules({"c 195:* w"})});
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_FALSE(kernel_allows(cgroup, "c:195:0:rw"));
  EXPECT_FALSE(kernel_allows(cgroup, "c:195:0:w"));
  EXPECT_TRUE(kernel_allows(cgroup, "c:195:0:r"));
  EXPECT_TRUE(kernel_allows(cgroup, "c:194:0:rw"));
}

TEST_F(FilterTest, RevokeBelowAnOverridableProgramKeepsWhatThatRefuses) {
  const ScratchCgroup parent(*host_, Hierarchy::v2);
  const ScratchCgroup child(*host_, Hierarchy::v2, parent.directory());
  ASSERT_TRUE(bpf_->attach(parent.cgroup(), load(table({"c 1:3 rw", "c 1:5 rw"})),
                           kernel::AttachAlone{Attachment::overridable, 0}));
  const Result<kernel::Applied> applied = kernel::apply(*filters_, child.open(), {Verb::deny, rules({"c 1:5 rw"})});
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_EQ(container::effective(applied->after).table, table({"c 1:3 rw"}));
  EXPECT_FALSE(kernel_allows(child, "c:195:0:r"))
      << "the new program disabled the one above, and keeps what that refused";
  EXPECT_TRUE(kernel_allows(child, "c:1:3:rw"));
}

TEST_F(FilterTest, GrantWidensTwoProgramsThatMeanTheSame) {
  const ScratchCgroup cgroup(*host_, Hierarchy::v2);
  ASSERT_TRUE(bpf_->attach(cgroup.cgroup(), load(table({"c 1:3 rw"})), kernel::AttachAlongside{}));
  ASSERT_TRUE(bpf_->attach(cgroup.cgroup(), load(table({"c 1:3 rw"})), kernel::AttachAlongside{}));
  const Result<kernel::Applied> applied = grant(cgroup, {"c 195:0 rw"});
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_TRUE(applied->holds);
  EXPECT_TRUE(kernel_allows(cgroup, "c:195:0:rw"));
}

TEST_F(FilterTest, GrantAddsAccessBitsUpAsV1Does) {
  const ScratchCgroup cgroup(*host_, Hierarchy::v2);
  ASSERT_TRUE(bpf_->attach(cgroup.cgroup(), load(table({"c 195:0 r"})), kernel::AttachAlongside{}));
  ASSERT_TRUE(grant(cgroup, {"c 195:0 w"}));
  EXPECT_TRUE(kernel_allows(cgroup, "c:195:0:rw"));
}

TEST_F(FilterTest, GrantAsksOnlyForWhatTheKernelAsks) {
  const ScratchCgroup parent(*host_, Hierarchy::v2);
  const ScratchCgroup child(*host_, Hierarchy::v2, parent.directory());
  ASSERT_TRUE(bpf_->attach(parent.cgroup(), load(table({"c 1:3 rw", "c 1:3 m"})), kernel::AttachAlongside{}));
  EXPECT_TRUE(grant(child, {"c 1:3 rwm"})) << "rw and m apart are all that can be asked";
}

TEST_F(FilterTest, AV1GrantThatFailsHalfwayLeavesNothingBehind) {
  const ScratchCgroup parent(*host_, Hierarchy::v1);
  parent.write("devices.deny", "c 196:0 rwm");  // hidden
  const ScratchCgroup child(*host_, Hierarchy::v1, parent.directory());
  child.write("devices.deny", "a");
  const Result<kernel::Applied> applied = grant(child, {"c 195:0 rw", "c 196:0 rw"});
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().reason, Reason::refused_above) << applied.error().message;
  EXPECT_TRUE(kernel::read_v1_list(child.cgroup())->exceptions.empty());
}

TEST_F(FilterTest, TheProbeOfAFrozenCgroupFailsForGood) {
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const kernel::Cgroup joined = scratch.cgroup();
  Result<kernel::Probe> probe = kernel::Probe::start({&joined});
  ASSERT_TRUE(probe) << probe.error().message;
  EXPECT_TRUE(*probe->ask(*device::parse_request("c:195:0:r")));
  scratch.write("cgroup.freeze", "1");
  EXPECT_FALSE(probe->ask(*device::parse_request("c:195:0:r")));
  scratch.write("cgroup.freeze", "0");
  EXPECT_FALSE(probe->ask(*device::parse_request("c:195:1:r"))) << "a late answer to another question";
}

TEST_F(FilterTest, ADeviceWithAnyAccessExistsForItsProcesses) {
  // access(2) with F_OK asks without any access bit; runtimes and cgroup v1 allow it where any bit is allowed.
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  ASSERT_TRUE(bpf_->attach(scratch.cgroup(), load(table({"c 195:0 r"})), kernel::AttachAlongside{}));
  const std::string allowed = nodes_.node({device::Kind::character, 195, 0});
  const std::string denied = nodes_.node({device::Kind::character, 195, 1});
  EXPECT_EQ(run_in({&scratch}, [&] { return ::access(allowed.c_str(), F_OK) == 0 ? 0 : errno; }), 0);
  EXPECT_EQ(run_in({&scratch}, [&] { return ::access(denied.c_str(), F_OK) == 0 ? 0 : errno; }), EPERM);
}

TEST_F(FilterTest, LockNeedsAProgramToLock) {
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  EXPECT_FALSE(kernel::lock_programs(*filters_, scratch.cgroup()));
}

TEST_F(FilterTest, LockKeepsEveryOtherWriterOut) {
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const kernel::Cgroup cgroup = scratch.cgroup();
  ASSERT_TRUE(bpf_->attach(cgroup, load(table({"c 1:3 rw", "c 195:0 rw"})), kernel::AttachAlongside{}));
  ASSERT_TRUE(bpf_->attach(cgroup, load(table({"c 1:3 rw", "c 1:5 rw"})), kernel::AttachAlongside{}));
  const Result<container::ProgramId> locked = kernel::lock_programs(*filters_, cgroup);
  ASSERT_TRUE(locked) << locked.error().message;
  const Observed observed = observe(scratch);
  ASSERT_EQ(observed.gates.size(), 1U);
  EXPECT_EQ(*observed.gates[0].meaning, table({"c 1:3 rw"})) << "what both let through";
  EXPECT_EQ(observed.gates[0].program->attachment, Attachment::single);
  EXPECT_FALSE(bpf_->attach(cgroup, load(Table()), kernel::AttachAlongside{}))
      << "the kernel refuses every other writer";
  std::ifstream freeze(scratch.directory() + "/cgroup.freeze");
  EXPECT_EQ(freeze.get(), '0') << "thawed again";

  const Result<container::ProgramId> unlocked = kernel::unlock_programs(*filters_, cgroup);
  ASSERT_TRUE(unlocked) << unlocked.error().message;
  EXPECT_TRUE(bpf_->attach(cgroup, load(table({"c 1:3 rw"})), kernel::AttachAlongside{}));
}

// The real kernel, except that attaching is replaced.
class FailingAttach final : public kernel::Bpf {
 public:
  FailingAttach(kernel::Bpf& real, std::function<Result<void>()> attach) : real_(real), attach_(std::move(attach)) {}
  Result<kernel::AttachedPrograms> query(const kernel::Cgroup& cgroup, kernel::Reach reach) override {
    return real_.query(cgroup, reach);
  }
  Result<kernel::Program> open(container::ProgramId id) override { return real_.open(id); }
  Result<kernel::Program> load(const bpf::Code& code) override { return real_.load(code); }
  Result<void> attach(const kernel::Cgroup& /*cgroup*/, const kernel::Program& /*program*/,
                      const kernel::AttachMode& /*mode*/) override {
    return attach_();
  }
  Result<void> detach(const kernel::Cgroup& cgroup, const kernel::Program& program, std::uint64_t revision) override {
    return real_.detach(cgroup, program, revision);
  }
  Result<kernel::ShieldMapPtr> create_shield_map() override { return real_.create_shield_map(); }
  Result<kernel::ShieldMapPtr> open_shield_map(const kernel::Program& shield) override {
    return real_.open_shield_map(shield);
  }
  Result<kernel::Program> load_shield(const kernel::ShieldMap& map, unsigned depth) override {
    return real_.load_shield(map, depth);
  }

 private:
  kernel::Bpf& real_;
  std::function<Result<void>()> attach_;
};

TEST_F(FilterTest, ALockThatFailsHalfWayIsFinishedByTheSameProcess) {
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const kernel::Cgroup cgroup = scratch.cgroup();
  ASSERT_TRUE(bpf_->attach(cgroup, load(table({"c 1:3 rw"})), kernel::AttachAlongside{}));
  FailingAttach refusing(*bpf_, [] { return fail(std::errc::not_enough_memory, "attach"); });
  kernel::Filters filters(*host_, refusing);
  ASSERT_FALSE(kernel::lock_programs(filters, cgroup));
  EXPECT_EQ(std::ifstream(scratch.directory() + "/cgroup.freeze").get(), '1') << "it must not run without a filter";
  EXPECT_EQ(kernel::finish_exchanges(*host_, *filters_).size(), 1U);
  EXPECT_EQ(std::ifstream(scratch.directory() + "/cgroup.freeze").get(), '0');
  EXPECT_EQ(*observe(scratch).gates.at(0).meaning, table({"c 1:3 rw"}));
  EXPECT_TRUE(kernel::finish_exchanges(*host_, *filters_).empty());
}

TEST_F(FilterTest, AHalfDoneChangeOfAV1ListIsUndoneExactly) {
  if (!host_->v1) {
    GTEST_SKIP() << "needs cgroup v1";
  }
  const ScratchCgroup parent(*host_, Hierarchy::v1);
  parent.write("devices.deny", "a");
  parent.write("devices.allow", "c 1:3 rwm");
  const ScratchCgroup own(*host_, Hierarchy::v1, parent.directory());
  own.write("devices.deny", "a");
  own.write("devices.allow", "c 1:3 r");
  const kernel::CgroupsOfProcess cgroups = own.open();
  const Table before = meaning(*kernel::read_v1_list(*cgroups.v1));
  const auto write = [&own](const char* rule) {
    return container::WriteV1{own.directory(), {device::Verb::allow, *device::parse_rule(rule)}};
  };
  const container::Plan plan{{write("c 1:3 rw"), write("b 7:0 rw")}, {}};  // the parent refuses the second
  ASSERT_FALSE(kernel::carry_out(*filters_, cgroups, plan));
  EXPECT_EQ(meaning(*kernel::read_v1_list(*cgroups.v1)), before);
}

TEST_F(FilterTest, ALockInterruptedByAKillIsFinishedByTheNextProcess) {
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const kernel::Cgroup cgroup = scratch.cgroup();
  ASSERT_TRUE(bpf_->attach(cgroup, load(table({"c 1:3 rw", "c 195:0 rw"})), kernel::AttachAlongside{}));
  const pid_t child = ::fork();
  if (child == 0) {
    FailingAttach killed(*bpf_, [] {
      ::raise(SIGKILL);
      return Result<void>();
    });
    kernel::Filters filters(*host_, killed);
    (void)kernel::lock_programs(filters, cgroup);
    ::_exit(0);
  }
  EXPECT_TRUE(kernel::finish_exchanges(*host_, *filters_).empty())
      << "a process that is still at work is not disturbed";
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto frozen = [&scratch] {
    std::ifstream file(scratch.directory() + "/cgroup.freeze");
    return file.get() == '1';
  };
  ASSERT_TRUE(frozen() && observe(scratch).gates.empty()) << "it is frozen, and has no filter";
  EXPECT_EQ(kernel::finish_exchanges(*host_, *filters_).size(), 1U);
  EXPECT_FALSE(frozen());
  const Observed observed = observe(scratch);
  ASSERT_EQ(observed.gates.size(), 1U);
  EXPECT_EQ(*observed.gates[0].meaning, table({"c 1:3 rw", "c 195:0 rw"}));
  EXPECT_EQ(observed.gates[0].program->attachment, Attachment::single);
  EXPECT_TRUE(kernel::finish_exchanges(*host_, *filters_).empty()) << "done once";
}

TEST_F(FilterTest, LockIsRefusedIfACgroupBelowHasItsOwnFilter) {
  const ScratchCgroup parent(*host_, Hierarchy::v2);
  const ScratchCgroup child(*host_, Hierarchy::v2, parent.directory());
  ASSERT_TRUE(bpf_->attach(parent.cgroup(), load(table({"c 1:3 rw"})), kernel::AttachAlongside{}));
  ASSERT_TRUE(bpf_->attach(child.cgroup(), load(table({"c 1:3 r"})), kernel::AttachAlongside{}));
  const Result<container::ProgramId> locked = kernel::lock_programs(*filters_, parent.cgroup());
  ASSERT_FALSE(locked);
  EXPECT_NE(locked.error().message.find(child.directory()), std::string::npos) << locked.error().message;
  EXPECT_EQ(observe(parent).gates[0].program->attachment, Attachment::several);
}

TEST_F(FilterTest, AnOpaqueProgramIsKeptBehindTheNewRules) {
  // Allows odd minors of every major, which no list of rules can express.
  const bpf::Code odd_minors = *bpf::parse_hex("6110080000000000\n5700000001000000\n9500000000000000\n");
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  ASSERT_TRUE(bpf_->attach(scratch.cgroup(), *bpf_->load(odd_minors), kernel::AttachAlongside{}));
  ASSERT_FALSE(observe(scratch).gates[0].meaning);
  const Result<kernel::Applied> applied = grant(scratch, {"c 195:0 rw"});
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_TRUE(kernel_allows(scratch, "c:195:0:rw"));
  EXPECT_FALSE(kernel_allows(scratch, "c:195:0:m"));
  EXPECT_FALSE(kernel_allows(scratch, "c:195:2:r"));
  EXPECT_TRUE(kernel_allows(scratch, "c:195:3:r"));
  EXPECT_TRUE(grant(scratch, {"c 195:0 rw"})->plan.steps.empty()) << "a second time there is nothing to do";
  ASSERT_TRUE(kernel::apply(*filters_, scratch.open(), {Verb::deny, rules({"c 195:3 w"})}));
  EXPECT_FALSE(kernel_allows(scratch, "c:195:3:rw"));
  EXPECT_TRUE(kernel_allows(scratch, "c:195:3:r"));
  EXPECT_TRUE(kernel_allows(scratch, "c:195:0:rw"));
}

TEST_F(FilterTest, AnOpaqueProgramIsJudgedByRunningIt) {
  const bpf::Code odd_minors = *bpf::parse_hex("6110080000000000\n5700000001000000\n9500000000000000\n");
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  ASSERT_TRUE(bpf_->attach(scratch.cgroup(), *bpf_->load(odd_minors), kernel::AttachAlongside{}));
  const Observed observed = observe(scratch);
  EXPECT_EQ(container::judge(observed, *device::parse_request("c:9:3:r")).kind, container::Answer::Kind::allow);
  EXPECT_EQ(container::judge(observed, *device::parse_request("c:9:4:r")).kind, container::Answer::Kind::deny);
  EXPECT_FALSE(container::effective(observed).exact);
}

// The kernel returns programs that use maps or helpers in a rewritten form.
class MapTest : public FilterTest {
 protected:
  void SetUp() override {
    FilterTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    map_ = kernel::Fd(::bpf_map_create(BPF_MAP_TYPE_ARRAY, "hf_test", 4, 8, 4, nullptr));
    ASSERT_TRUE(map_) << std::strerror(errno);
  }

  static bpf::Instruction make(int code, int dst, int src, int off, int imm) {
    bpf::Instruction at{};
    at.code = std::uint8_t(code);
    at.dst_reg = std::uint8_t(dst) & 0xfU;
    at.src_reg = std::uint8_t(src) & 0xfU;
    at.off = std::int16_t(off);
    at.imm = imm;
    return at;
  }

  // r0 = address of element 0 of the map, or 0; r6 = the request
  bpf::Code lookup() const {
    return {make(BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0),
            make(BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 0),
            make(BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0),
            make(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -4),
            make(BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_FD, 0, map_.get()),
            make(0, 0, 0, 0, 0),
            make(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem)};
  }

  kernel::Fd map_;
};

TEST_F(MapTest, AProgramThatOnlyCountsInAMapIsReadExactly) {
  bpf::Code code = lookup();
  const bpf::Code rest = {make(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3, 0),   make(BPF_LDX | BPF_MEM | BPF_DW, 1, 0, 0, 0),
                          make(BPF_ALU64 | BPF_ADD | BPF_K, 1, 0, 0, 1), make(BPF_STX | BPF_MEM | BPF_DW, 0, 1, 0, 0),
                          make(BPF_LDX | BPF_MEM | BPF_W, 1, 6, 4, 0),   make(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
                          make(BPF_JMP | BPF_JNE | BPF_K, 1, 0, 1, 195), make(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1),
                          make(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)};
  code.insert(code.end(), rest.begin(), rest.end());
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const Result<kernel::Program> program = bpf_->load(code);
  ASSERT_TRUE(program) << program.error().message;
  ASSERT_TRUE(bpf_->attach(scratch.cgroup(), *program, kernel::AttachAlongside{}));
  const Gate gate = observe(scratch).gates[0];
  ASSERT_TRUE(gate.meaning) << gate.meaning.error().why;
  EXPECT_EQ(*gate.meaning, table({"a 195:* rwm"}));
  ASSERT_TRUE(grant(scratch, {"c 1:3 rw"})) << "regenerated from its meaning";
  EXPECT_TRUE(kernel_allows(scratch, "c:1:3:rw"));
}

TEST_F(MapTest, AProgramThatAsksAMapIsOpaqueAndLeftAlone) {
  bpf::Code code = lookup();
  const bpf::Code rest = {make(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2, 0), make(BPF_LDX | BPF_MEM | BPF_DW, 0, 0, 0, 0),
                          make(BPF_ALU64 | BPF_AND | BPF_K, 0, 0, 0, 1), make(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)};
  code.insert(code.end(), rest.begin(), rest.end());
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const Result<kernel::Program> program = bpf_->load(code);
  ASSERT_TRUE(program) << program.error().message;
  ASSERT_TRUE(bpf_->attach(scratch.cgroup(), *program, kernel::AttachAlongside{}));
  const Gate gate = observe(scratch).gates[0];
  ASSERT_FALSE(gate.meaning);
  EXPECT_NE(gate.meaning.error().why.find("map"), std::string::npos);
  const Result<kernel::Applied> applied = grant(scratch, {"c 1:3 rw"});
  ASSERT_FALSE(applied);
  EXPECT_NE(applied.error().message.find("nothing was changed"), std::string::npos) << applied.error().message;
  EXPECT_EQ(observe(scratch).gates[0].program->id, program->id);

  // The probe still gives the verdict: element 0 of the map is 0 now, and 1 later.
  const kernel::Cgroup joined = scratch.cgroup();
  Result<kernel::Probe> probe = kernel::Probe::start({&joined});
  ASSERT_TRUE(probe) << probe.error().message;
  EXPECT_FALSE(*probe->ask(*device::parse_request("c:1:3:r")));
  const std::uint32_t key = 0;
  const std::uint64_t value = 1;
  ASSERT_EQ(::bpf_map_update_elem(map_.get(), &key, &value, BPF_ANY), 0);
  EXPECT_TRUE(*probe->ask(*device::parse_request("c:1:3:r")));
}

TEST_F(MapTest, AHelperThatSetsTheErrorIsNotTakenForHarmless) {
  const bpf::Code code = {make(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, -1),
                          make(BPF_JMP | BPF_CALL, 0, 0, 0, 187),  // bpf_set_retval
                          make(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1), make(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)};
  // Kernel: only programs loaded with this expected attach type may call the helper.
  bpf_prog_load_opts options{};
  options.sz = sizeof(options);
  options.expected_attach_type = BPF_CGROUP_DEVICE;
  const kernel::Fd program(
      ::bpf_prog_load(BPF_PROG_TYPE_CGROUP_DEVICE, "setter", "GPL", code.data(), code.size(), &options));
  if (!program) {
    GTEST_SKIP() << "this kernel has no bpf_set_retval for device programs (5.18 and later do)";
  }
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  ASSERT_EQ(::bpf_prog_attach(program.get(), scratch.cgroup().directory.get(), BPF_CGROUP_DEVICE, BPF_F_ALLOW_MULTI),
            0);
  EXPECT_FALSE(kernel_allows(scratch, "c:1:3:r")) << "though it returns 1";
  const Gate gate = observe(scratch).gates[0];
  ASSERT_TRUE(gate.meaning) << gate.meaning.error().why;
  EXPECT_EQ(*gate.meaning, Table());
}

TEST_F(FilterTest, AHelperWhoseAnswerIsNotUsedDoesNoHarm) {
  // r6 = ctx; call bpf_get_current_pid_tgid; r0 = (major == 195)
  const bpf::Code code = *bpf::parse_hex(
      "bf16000000000000\n850000000e000000\n6161040000000000\nb700000000000000\n55010100c3000000\nb700000001000000\n9500"
      "000000000000\n");
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  ASSERT_TRUE(bpf_->attach(scratch.cgroup(), *bpf_->load(code), kernel::AttachAlongside{}));
  const Gate gate = observe(scratch).gates[0];
  ASSERT_TRUE(gate.meaning) << gate.meaning.error().why;
  EXPECT_EQ(*gate.meaning, table({"a 195:* rwm"}));
}

// Changes a kernel setting for the duration of a test.
class Setting {
 public:
  Setting(std::string path, const std::string& value) : path_(std::move(path)) {
    std::ifstream(path_) >> before_;
    works_ = write(value);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  ~Setting() { (void)write(before_); }
  [[nodiscard]] bool works() const { return works_; }

 private:
  [[nodiscard]] bool write(const std::string& value) const {
    std::ofstream file(path_);
    return bool(file << value << std::flush);
  }

  std::string path_;
  std::string before_;
  bool works_ = false;
};

constexpr const char* kHarden = "/proc/sys/net/core/bpf_jit_harden";
constexpr const char* kHideAddresses = "/proc/sys/kernel/kptr_restrict";

TEST_F(FilterTest, ProgramsTheKernelDoesNotReturnAreTestedByTheProbe) {
  const Setting harden(kHarden, "2");
  const Setting hide(kHideAddresses, "2");
  if (!harden.works() || !hide.works()) {
    GTEST_SKIP() << "bpf_jit_harden or kptr_restrict cannot be set here";
  }
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  ASSERT_TRUE(bpf_->attach(scratch.cgroup(), load(table({"c 195:0-7 rw"})), kernel::AttachAlongside{}));
  const Observed observed = observe(scratch);
  if (observed.gates[0].meaning) {
    GTEST_SKIP() << "this kernel returns the code all the same";
  }
  EXPECT_FALSE(container::effective(observed).exact);
  EXPECT_EQ(container::judge(observed, *device::parse_request("c:195:0:r")).kind, container::Answer::Kind::unknown);
  const kernel::Cgroup joined = scratch.cgroup();
  Result<kernel::Probe> probe = kernel::Probe::start({&joined});
  ASSERT_TRUE(probe) << probe.error().message;
  EXPECT_TRUE(*probe->ask(*device::parse_request("c:195:7:rw")));
  EXPECT_FALSE(*probe->ask(*device::parse_request("c:195:8:rw")));
  const Result<kernel::Applied> applied = grant(scratch, {"c 195:8 rw"});
  ASSERT_FALSE(applied);
  EXPECT_NE(applied.error().message.find("nothing was changed"), std::string::npos) << applied.error().message;
}

TEST_F(FilterTest, BlindedProgramsAreReadExactlyAndRegenerated) {
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const Table meaning = table({"c 1:3 rw", "c 195:0-7 rw", "b *:* m"});
  {
    const Setting hardened(kHarden, "2");
    if (!hardened.works()) {
      GTEST_SKIP() << "net.core.bpf_jit_harden cannot be set here";
    }
    ASSERT_TRUE(bpf_->attach(scratch.cgroup(), load(meaning), kernel::AttachAlongside{}));
    const Gate gate = observe(scratch).gates[0];
    ASSERT_TRUE(gate.meaning) << gate.meaning.error().why;
    EXPECT_EQ(*gate.meaning, meaning);
    if (bpf::same(gate.program->code, *bpf::generate(meaning))) {
      GTEST_SKIP() << "this kernel did not blind the program (no JIT)";
    }
    EXPECT_FALSE(bpf::check_loadable_again(gate.program->code));
    ASSERT_TRUE(grant(scratch, {"c 195:255 rw"}));
  }
  EXPECT_TRUE(kernel_allows(scratch, "c:195:255:rw"));
  EXPECT_TRUE(kernel_allows(scratch, "c:195:7:rw"));
  EXPECT_FALSE(kernel_allows(scratch, "c:195:8:r"));
}

TEST_F(FilterTest, TheProbeAnswersLikeTheKernel) {
  const ScratchCgroup v1(*host_, Hierarchy::v1);
  v1.write("devices.deny", "c 195:0 w");  // hidden: the list still says "a *:* rwm"
  const Observed observed = observe(v1);
  EXPECT_FALSE(container::effective(observed).exact);
  EXPECT_EQ(container::judge(observed, *device::parse_request("c:195:0:rw")).kind, container::Answer::Kind::unknown);
  const kernel::Cgroup joined = v1.cgroup();
  Result<kernel::Probe> probe = kernel::Probe::start({&joined});
  ASSERT_TRUE(probe) << probe.error().message;
  EXPECT_FALSE(*probe->ask(*device::parse_request("c:195:0:rw")));
  EXPECT_TRUE(*probe->ask(*device::parse_request("c:195:0:r")));
  EXPECT_TRUE(*probe->ask(*device::parse_request("c:195:0:rm")));
  EXPECT_TRUE(*probe->ask(*device::parse_request("b:195:0:rw")));
}

TEST_F(FilterTest, ARootThatHidesDeniesIsFoundOut) {
  const kernel::Cgroup root = *kernel::open_root(*host_, Hierarchy::v1);
  EXPECT_FALSE(*kernel::root_refuses_some(root));
  const std::uint32_t major = unused_majors(9).back();
  const device::Rule rule = *device::parse_rule("c " + std::to_string(major) + ":77 rwm");
  ASSERT_TRUE(kernel::write_v1(root, {Verb::deny, rule}));
  EXPECT_TRUE(*kernel::root_refuses_some(root));
  ASSERT_TRUE(kernel::write_v1(root, {Verb::allow, rule}));
  EXPECT_FALSE(*kernel::root_refuses_some(root));
}

TEST_F(FilterTest, AVanishedCgroupIsAnErrorNotAnAnswer) {
  kernel::CgroupsOfProcess v1;
  kernel::CgroupsOfProcess v2;
  {
    const ScratchCgroup first(*host_, Hierarchy::v1);
    const ScratchCgroup second(*host_, Hierarchy::v2);
    v1 = first.open();
    v2 = second.open();
  }
  EXPECT_FALSE(kernel::observe(*filters_, v1));
  EXPECT_FALSE(kernel::apply(*filters_, v1, {Verb::allow, rules({"c 1:3 rw"})}));
  EXPECT_FALSE(kernel::apply(*filters_, v2, {Verb::deny, rules({"c 1:3 rw"})}));
}

TEST_F(FilterTest, HostOverviewListsCgroupsThatRestrict) {
  const ScratchCgroup free_v1(*host_, Hierarchy::v1);
  const ScratchCgroup v1(*host_, Hierarchy::v1);
  const ScratchCgroup v2(*host_, Hierarchy::v2);
  v1.write("devices.deny", "a");
  ASSERT_TRUE(bpf_->attach(v2.cgroup(), load(table({"c 1:3 rw"})), kernel::AttachAlongside{}));
  const Result<kernel::ObservedHost> gates = kernel::observe_host(*host_, *filters_);
  ASSERT_TRUE(gates) << gates.error().message;
  const auto lists = [&](const ScratchCgroup& cgroup) {
    return std::ranges::count(gates->gates, cgroup.directory(), &Gate::where);
  };
  EXPECT_EQ(lists(v1), 1);
  EXPECT_EQ(lists(v2), 1);
  EXPECT_EQ(lists(free_v1), 0);
}

}  // namespace
}  // namespace hf::test
