// Tests with other writers that change rules at the same time: no rule is lost, and access is never too wide or too
// narrow.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/bpf/generate.h"
#include "core/container/gate/change.h"
#include "core/device/v1_plan.h"
#include "kernel/cgroup/apply.h"
#include "kernel/cgroup/device_v1.h"
#include "kernel/cgroup/device_v2.h"
#include "kernel/cgroup/observe.h"
#include "kernel_test.h"
#include "support/random.h"

namespace hf::test {
namespace {

using container::Hierarchy;
using device::Table;
using device::Verb;

// A process in the cgroup that repeatedly opens one node that must always open and one that must never open.
class Reader {
 public:
  Reader(const ScratchCgroup& cgroup, const std::string& always, const std::string& never) {
    counts_ = static_cast<Counts*>(
        ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    child_ = ::fork();
    if (child_ == 0) {
      const int file = ::open((cgroup.directory() + "/cgroup.procs").c_str(), O_WRONLY);
      if (::write(file, "0", 1) != 1) {
        ::_exit(1);
      }
      while (!counts_->stop) {
        counts_->refused += can_open(always) ? 0 : 1;
        counts_->too_wide += can_open(never) ? 1 : 0;
        ++counts_->opens;
      }
      ::_exit(0);
    }
    while (counts_->opens == 0) {
      ::usleep(100);
    }
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() {
    finish();
    ::munmap(counts_, sizeof(Counts));
  }

  void finish() {
    if (child_ > 0) {
      counts_->stop = true;
      ::waitpid(std::exchange(child_, 0), nullptr, 0);
    }
  }

  [[nodiscard]] std::uint64_t opens() const { return counts_->opens; }
  [[nodiscard]] std::uint64_t refused() const { return counts_->refused; }
  [[nodiscard]] std::uint64_t too_wide() const { return counts_->too_wide; }

 private:
  struct Counts {
    std::atomic<std::uint64_t> opens;
    std::atomic<std::uint64_t> refused;
    std::atomic<std::uint64_t> too_wide;
    std::atomic<bool> stop;
  };

  static bool can_open(const std::string& node) {
    const int file = ::open(node.c_str(), O_RDWR | O_CLOEXEC);
    const bool opened = file >= 0 || errno != EPERM;
    ::close(file);
    return opened;
  }

  Counts* counts_;
  pid_t child_ = 0;
};

class Race : public KernelTest {
 protected:
  static constexpr int kGrants = 10'000;

  void SetUp() override {
    KernelTest::SetUp();
    major_ = unused_majors(1).empty() ? 0 : unused_majors(1).front();
  }

  device::Rule rule(int minor, const char* access = "rw") const {
    return *device::parse_rule("c " + std::to_string(major_) + ":" + std::to_string(minor) + " " + access);
  }
  Table with_null(std::vector<device::Rule> rules) const {
    rules.push_back(*device::parse_rule("c 1:3 rwm"));
    return Table::of_rules(rules);
  }
  std::string node(int minor) { return nodes_.node({device::Kind::character, major_, std::uint32_t(minor)}); }
  std::string null_node() { return nodes_.node({device::Kind::character, 1, 3}); }

  NodeDirectory nodes_;
  std::uint32_t major_ = 0;
};

TEST_F(Race, GrantAgainstAWriterThatReplacesTheFilterAsFastAsItCan) {
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const kernel::Cgroup cgroup = scratch.cgroup();
  const Table first = with_null({rule(1)});
  const Table second = with_null({rule(2)});
  const Table granted = Table::of_rules({std::vector{rule(0)}});
  const kernel::Program programs[] = {*bpf_->load(*bpf::generate(first)), *bpf_->load(*bpf::generate(second))};
  ASSERT_TRUE(bpf_->attach(cgroup, programs[0], kernel::AttachAlongside{}));
  Reader reader(scratch, null_node(), node(9));

  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> swaps = 0;
  std::thread writer([&] {
    const std::unique_ptr<kernel::Bpf> own = kernel::open_kernel_bpf();
    for (std::uint64_t turn = 0; !stop; ++turn) {
      const Result<kernel::AttachedPrograms> attached = own->query(cgroup, kernel::Reach::own);
      const Result<kernel::Program> current = attached && attached->ids.size() == 1
                                                  ? own->open(attached->ids.front())
                                                  : fail(std::errc::io_error, "not one program");
      if (current && current->id != programs[turn % 2].id &&
          own->attach(cgroup, programs[turn % 2], kernel::AttachReplacing{*current})) {
        ++swaps;
      }
    }
  });

  const kernel::CgroupsOfProcess target = scratch.open();
  int held = 0;
  std::uint64_t attempts = 0;
  std::string failure;
  for (int i = 0; i < kGrants && failure.empty(); ++i) {
    const Result<kernel::Applied> applied =
        kernel::apply(*filters_, target, {Verb::allow, {rule(0)}}, std::chrono::seconds(10));
    if (!applied) {
      failure = applied.error().message;
      break;
    }
    held += applied->holds ? 1 : 0;
    attempts += std::uint64_t(applied->attempts);
    const std::vector<container::Gate>& gates = applied->after.gates;
    const Table now = gates.size() == 1 && gates[0].meaning ? *gates[0].meaning : Table::everything();
    const bool known = now == first || now == second || now == (first | granted) || now == (second | granted);
    failure = known ? "" : "an unexpected filter after grant " + std::to_string(i);
  }
  stop = true;
  writer.join();
  reader.finish();
  EXPECT_EQ(failure, "");
  EXPECT_EQ(reader.refused(), 0U) << "of " << reader.opens() << " opens of a device that is always allowed";
  EXPECT_EQ(reader.too_wide(), 0U);
  EXPECT_GT(swaps, 100U);
  EXPECT_GT(held, 0);
  const Result<kernel::Applied> last =
      kernel::apply(*filters_, target, {Verb::allow, {rule(0)}}, std::chrono::seconds(10));
  ASSERT_TRUE(last);
  EXPECT_TRUE(last->holds) << "no other writer is left";
  std::printf("%d grants in %llu attempts against %llu swaps; %llu opens, none refused\n", kGrants,
              static_cast<unsigned long long>(attempts), static_cast<unsigned long long>(swaps.load()),
              static_cast<unsigned long long>(reader.opens()));
}

TEST_F(Race, V1GrantsAndRevokesKeepWhatIsNotRevoked) {
  const ScratchCgroup scratch(*host_, Hierarchy::v1);
  const kernel::Cgroup cgroup = scratch.cgroup();
  scratch.write("devices.deny", "a");
  scratch.write("devices.allow", "c 1:3 rwm");
  Reader reader(scratch, null_node(), node(9));
  Random random(4711);
  std::size_t writes = 0;
  for (int i = 0; i < 2000; ++i) {
    device::RuleSet rules;  // minor 9 is never granted, /dev/null never revoked
    for (std::uint32_t count = 1 + random.below(4); count > 0; --count) {
      rules.push_back(rule(int(random.below(4)), random.one_in(2) ? "rw" : "rm"));
    }
    const bool is_grant = random.one_in(2);
    const device::V1List now = *kernel::read_v1_list(cgroup);
    const Result<device::V1Plan> plan = is_grant ? plan_v1_grant(now, rules) : plan_v1_revoke(now, rules);
    ASSERT_TRUE(plan) << plan.error().message;
    for (const device::CgroupWrite& write : *plan) {
      ASSERT_TRUE(kernel::write_v1(cgroup, write)) << to_string(write);
      ++writes;
    }
    const Table then = meaning(*kernel::read_v1_list(cgroup));
    const Table asked = Table::of_rules(rules);
    ASSERT_TRUE(is_grant ? then.contains(device::askable(asked)) : device::askable(then & asked).allows_nothing());
  }
  reader.finish();
  EXPECT_EQ(reader.refused(), 0U) << "of " << reader.opens() << " opens of a device that is always allowed";
  EXPECT_EQ(reader.too_wide(), 0U);
  std::printf("%zu writes in 2000 changes; %llu opens, none refused\n", writes,
              static_cast<unsigned long long>(reader.opens()));
}

TEST_F(Race, LockingAndUnlockingIsNeverNoticedInside) {
  const ScratchCgroup scratch(*host_, Hierarchy::v2);
  const kernel::Cgroup cgroup = scratch.cgroup();
  ASSERT_TRUE(bpf_->attach(cgroup, *bpf_->load(*bpf::generate(with_null({rule(1)}))), kernel::AttachAlongside{}));
  Reader reader(scratch, null_node(), node(9));
  for (int i = 0; i < 100; ++i) {
    const Result<container::ProgramId> locked = kernel::lock_programs(*filters_, cgroup);
    ASSERT_TRUE(locked) << locked.error().message;
    const Result<container::ProgramId> unlocked = kernel::unlock_programs(*filters_, cgroup);
    ASSERT_TRUE(unlocked) << unlocked.error().message;
  }
  reader.finish();
  EXPECT_EQ(reader.refused(), 0U);
  EXPECT_EQ(reader.too_wide(), 0U) << "of " << reader.opens();
}

}  // namespace
}  // namespace hf::test
