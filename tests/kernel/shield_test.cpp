// Tests of the shield on the real kernel: every claim is checked with open(2).
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/bpf/generate.h"
#include "kernel/cgroup/apply.h"
#include "kernel/cgroup/observe.h"
#include "kernel/cgroup/shield.h"
#include "kernel_test.h"

namespace hf::test {
namespace {

using container::Hierarchy;
using container::ShieldEntry;
using device::Access;
using device::Device;
using device::Kind;
using device::Table;

constexpr Access kReadWrite = Access::read | Access::write;

// Results of open(2) in processes of a cgroup, counted by these processes.
struct Tally {
  std::atomic<std::uint64_t> opens = 0;
  std::atomic<std::uint64_t> refused = 0;
  std::atomic<std::uint64_t> unowed_opened = 0;
};

class SharedTally {
 public:
  SharedTally() : memory_(::mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    new (memory_) Tally();
  }
  SharedTally(const SharedTally&) = delete;
  SharedTally& operator=(const SharedTally&) = delete;
  ~SharedTally() { ::munmap(memory_, sizeof(Tally)); }

  Tally& operator*() const { return *static_cast<Tally*>(memory_); }
  Tally* operator->() const { return static_cast<Tally*>(memory_); }

 private:
  void* memory_;
};

bool is_refused(const std::string& node) {
  const kernel::Fd opened(::open(node.c_str(), O_RDWR | O_CLOEXEC));
  return !opened && errno == EPERM;
}

class ShieldTest : public KernelTest {
 protected:
  ShieldTest() : KernelTest(Needs::v2) {}

  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    Result<kernel::Shield> shield = kernel::Shield::open(*host_, *filters_);
    if (!shield) {
      GTEST_SKIP() << shield.error().message;
    }
    shield_.emplace(*std::move(shield));
    major_ = unused_majors(1).front();
    parent_.emplace(*host_, Hierarchy::v2);
    own_.emplace(*host_, Hierarchy::v2, parent_->directory());
    owed_ = nodes_.node({Kind::character, major_, 0});
    unowed_ = nodes_.node({Kind::character, major_, 1});
  }

  void enter(const ScratchCgroup& cgroup) {
    const kernel::Cgroup parent = parent_->cgroup();
    const Result<void> set =
        shield_->set(cgroup.cgroup().id, parent, {ShieldEntry{{Kind::character, major_, 0}, kReadWrite, 0, 0}});
    ASSERT_TRUE(set) << set.error().message;
    const Result<void> attached = shield_->attach(parent);
    ASSERT_TRUE(attached) << attached.error().message;
  }

  kernel::Program attach(const ScratchCgroup& cgroup, const Table& table) {
    kernel::Program program = *bpf_->load(*bpf::generate(table));
    const Result<void> attached = bpf_->attach(cgroup.cgroup(), program, kernel::AttachAlongside{});
    EXPECT_TRUE(attached) << attached.error().message;
    return program;
  }

  bool opens(const ScratchCgroup& cgroup, const std::string& node) const {
    return run_in({&cgroup}, [&node] { return is_refused(node) ? 1 : 0; }) == 0;
  }

  std::optional<kernel::Shield> shield_;
  std::optional<ScratchCgroup> parent_;
  std::optional<ScratchCgroup> own_;
  NodeDirectory nodes_;
  std::uint32_t major_ = 0;
  std::string owed_;
  std::string unowed_;
};

// The writer never pauses; the program is loaded once.
TEST_F(ShieldTest, NoOpenOfAnOwedDeviceFailsWhileTheRulesAreRewritten) {
  enter(*own_);
  const kernel::Program deny_all = *bpf_->load(*bpf::generate(Table()));
  const kernel::Cgroup cgroup = own_->cgroup();
  const SharedTally tally;
  std::atomic<bool> stops = false;
  std::atomic<std::uint64_t> attacks = 0;
  std::thread writer([&] {
    while (!stops) {
      const bool done = bpf_->attach(cgroup, deny_all, kernel::AttachAlongside{}) && bpf_->detach(cgroup, deny_all, 0);
      attacks += done ? 1 : 0;
    }
  });
  run_in({&*own_}, [&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (std::chrono::steady_clock::now() < end) {
      ++tally->opens;
      tally->refused += is_refused(owed_) ? 1 : 0;
    }
    return 0;
  });
  stops = true;
  writer.join();
  const std::vector<ShieldEntry> entries = *shield_->entries_of(cgroup.id, parent_->cgroup());
  ASSERT_EQ(entries.size(), 1U);
  std::printf("%llu opens, %llu refused, %llu let through by the shield alone, under %llu attacks\n",
              static_cast<unsigned long long>(tally->opens), static_cast<unsigned long long>(tally->refused),
              static_cast<unsigned long long>(entries[0].count), static_cast<unsigned long long>(attacks.load()));
  EXPECT_EQ(tally->refused, 0U);
  EXPECT_GT(attacks, 0U);
  EXPECT_GT(entries[0].count, 0U) << "the attacks were real";
  EXPECT_GT(entries[0].last_at, 0U);
  EXPECT_TRUE(opens(*own_, unowed_)) << "no rules are in force now";
}

TEST_F(ShieldTest, LetsThroughWhatIsEnteredAndNothingElse) {
  enter(*own_);
  attach(*own_, Table());
  EXPECT_TRUE(opens(*own_, owed_));
  EXPECT_FALSE(opens(*own_, unowed_));
  const ScratchCgroup sibling(*host_, Hierarchy::v2, parent_->directory());
  attach(sibling, Table());
  EXPECT_FALSE(opens(sibling, owed_)) << "a sibling below the same parent";
  const ScratchCgroup nested(*host_, Hierarchy::v2, own_->directory());
  EXPECT_FALSE(opens(nested, owed_)) << "a cgroup inside, such as a nested container's";
  const int mknod = run_in({&*own_}, [this] {
    const std::string node = nodes_.path() + "/node";
    return ::mknod(node.c_str(), S_IFCHR | 0600, ::makedev(major_, 0)) < 0 && errno == EPERM ? 1 : 0;
  });
  EXPECT_EQ(mknod, 1) << "mknod is not owed";
}

TEST_F(ShieldTest, AProcessMovedToAnotherCgroupIsNotShieldedThere) {
  enter(*own_);
  attach(*own_, Table());
  const ScratchCgroup elsewhere(*host_, Hierarchy::v2, parent_->directory());
  attach(elsewhere, Table());
  const int refused = run_in({&*own_}, [&] {
    const bool before = is_refused(owed_);
    elsewhere.write("cgroup.procs", "0");
    return (before ? 1 : 0) + (is_refused(owed_) ? 2 : 0);
  });
  EXPECT_EQ(refused, 2);
}

TEST_F(ShieldTest, ProgramsAttachedToTheParentLaterStillRefuse) {
  enter(*own_);
  attach(*own_, Table());
  ASSERT_TRUE(opens(*own_, owed_));
  const kernel::Program later = attach(*parent_, Table());
  EXPECT_FALSE(opens(*own_, owed_)) << "attached to the parent after the shield";
  ASSERT_TRUE(bpf_->detach(parent_->cgroup(), later, 0));
  EXPECT_TRUE(opens(*own_, owed_));
}

TEST_F(ShieldTest, ShieldsOnTwoLevelsAreIndependent) {
  enter(*own_);
  const ScratchCgroup inner(*host_, Hierarchy::v2, own_->directory());
  const kernel::Cgroup own = own_->cgroup();
  ASSERT_TRUE(shield_->set(inner.cgroup().id, own, {ShieldEntry{{Kind::character, major_, 0}, kReadWrite, 0, 0}}));
  ASSERT_TRUE(shield_->attach(own));
  attach(inner, Table());
  EXPECT_TRUE(opens(inner, owed_)) << "by the shield on its own parent";
  attach(*own_, Table());
  EXPECT_FALSE(opens(inner, owed_)) << "a program of the outer container refuses, and the outer shield is not its own";
  EXPECT_TRUE(opens(*own_, owed_));
}

TEST_F(ShieldTest, ACgroupRecreatedUnderTheSameNameIsNotShielded) {
  enter(*own_);
  const std::string directory = own_->directory();
  ASSERT_EQ(::rmdir(directory.c_str()), 0);
  ASSERT_EQ(::mkdir(directory.c_str(), 0755), 0);
  attach(*own_, Table());
  EXPECT_FALSE(opens(*own_, owed_));
}

TEST_F(ShieldTest, StaysInForceWithoutItsDaemonAndIsFoundAgain) {
  enter(*own_);
  attach(*own_, Table());
  const auto before = bpf_->query(parent_->cgroup(), kernel::Reach::own)->ids;
  shield_.reset();
  filters_.emplace(*host_, *bpf_);
  EXPECT_TRUE(opens(*own_, owed_));
  shield_.emplace(*kernel::Shield::open(*host_, *filters_));
  EXPECT_EQ(shield_->entries_of(own_->cgroup().id, parent_->cgroup())->size(), 1U);
  ASSERT_TRUE(shield_->attach(parent_->cgroup()));
  EXPECT_EQ(bpf_->query(parent_->cgroup(), kernel::Reach::own)->ids, before) << "one program, and the same";
  shield_->keep_only({}, {});
  EXPECT_FALSE(opens(*own_, owed_));
  EXPECT_TRUE(bpf_->query(parent_->cgroup(), kernel::Reach::own)->ids.empty());
}

TEST_F(ShieldTest, RulesShowItAndTheVerdictTakesItIntoAccount) {
  enter(*own_);
  attach(*own_, Table());
  const kernel::CgroupsOfProcess cgroups = own_->open();
  const container::Observed observed = *kernel::observe(*filters_, cgroups);
  const device::Request request{{Kind::character, major_, 0}, kReadWrite};
  EXPECT_EQ(container::judge(observed, request).kind, container::Answer::Kind::allow);
  EXPECT_TRUE(container::effective(observed).table.allows(request));
  EXPECT_TRUE(container::effective(observed).exact);
  const auto gate =
      std::ranges::find_if(observed.gates, [](const container::Gate& one) { return one.shield.has_value(); });
  ASSERT_NE(gate, observed.gates.end());
  EXPECT_EQ(gate->shield->entries.size(), 1U);
  EXPECT_FALSE(gate->is_own);
}

TEST_F(ShieldTest, ARevokedDeviceIsRefusedWhenRevokeReturns) {
  enter(*own_);
  attach(*own_, table({"c *:* rw"}));
  const kernel::CgroupsOfProcess cgroups = own_->open();
  const device::Rule rule = rule_for(ShieldEntry{{Kind::character, major_, 0}, kReadWrite, 0, 0});
  const Result<kernel::Applied> applied = kernel::apply(*filters_, cgroups, {device::Verb::deny, {rule}});
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_TRUE(applied->holds);
  EXPECT_FALSE(opens(*own_, owed_));
}

TEST_F(ShieldTest, CannotBeAttachedBesideAnExclusiveProgram) {
  const kernel::Program alone = *bpf_->load(*bpf::generate(Table::everything()));
  ASSERT_TRUE(bpf_->attach(parent_->cgroup(), alone, kernel::AttachAlone{}));
  EXPECT_FALSE(shield_->attach(parent_->cgroup()));
}

TEST_F(ShieldTest, RemovingAllShieldsLeavesNone) {
  enter(*own_);
  attach(*own_, Table());
  const Result<std::vector<std::string>> removed = kernel::remove_shields(*host_, *filters_);
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_NE(std::ranges::find(*removed, parent_->cgroup().where), removed->end());
  EXPECT_FALSE(opens(*own_, owed_));
}

}  // namespace
}  // namespace hf::test
