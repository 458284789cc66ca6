#include "adapters/journal/journal.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "adapters/journal/run_file.h"
#include "adapters/journal/status.h"
#include "render/blame.h"
#include "support/fake_host.h"

namespace hf::journal {
namespace {

class JournalTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "only root can create files that belong to root";
    }
  }
  static report::BlameRecord record(const std::string& container) {
    report::BlameRecord made;
    made.id = container;
    made.container = container;
    made.devices = {"/dev/nvidia0"};
    made.action = report::Action::healed;
    return made;
  }

  test::FakeHost machine_{test::Files{
      {"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}, {"run/", ""}, {"var/lib/", ""}}};
  kernel::Host host_ = machine_.open();
  std::string file_ = machine_.root() + "/var/lib/holdfast/blame.jsonl";
};

// The message of another process that tries, "" where it may.
template <class Lock>
std::string try_elsewhere(const Lock& lock) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const Result<kernel::Fd> locked = lock();
    const std::string said = locked ? "" : locked.error().message;
    ::_exit(::write(ends[1], said.data(), said.size()) == ssize_t(said.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  ::waitpid(child, nullptr, 0);
  std::string said(200, '\0');
  said.resize(std::size_t(std::max<ssize_t>(::read(ends[0], said.data(), said.size()), 0)));
  ::close(ends[0]);
  return said;
}

TEST_F(JournalTest, OneGuardAtATimeOnAHost) {
  const auto lock = [this] { return lock_host(host_); };
  const std::string busy = "holdfastd runs already (pid " + std::to_string(::getpid()) + ")";
  {
    const Result<kernel::Fd> first = lock();
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_EQ(try_elsewhere(lock), busy);
    const auto name_holder = [this]() -> Result<kernel::Fd> {
      const std::optional<container::Pid> holder = holder_of_host_lock(host_);
      return fail(std::errc::device_or_resource_busy, holder ? std::to_string(holder->value) : "none");
    };
    EXPECT_EQ(try_elsewhere(name_holder), std::to_string(::getpid()));
    remove_host_lock(host_);
    EXPECT_EQ(holder_of_host_lock(host_), std::nullopt);
    EXPECT_FALSE(std::filesystem::exists(machine_.root() + "/run/holdfast"));
  }
  const Result<kernel::Fd> next = lock();
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(try_elsewhere(lock), busy);
}

TEST_F(JournalTest, OneDaemonAtATime) {
  const auto in = [this](const char* directory) {
    return [this, directory] { return lock_journal(host_, directory); };
  };
  {
    const Result<kernel::Fd> first = lock_journal(host_, "/var/lib/holdfast");
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_EQ(try_elsewhere(in("/var/lib/holdfast")),
              "holdfastd runs already (pid " + std::to_string(::getpid()) + ") with the journal /var/lib/holdfast");
    EXPECT_EQ(try_elsewhere(in("/var/lib/another")), "");
  }
  EXPECT_EQ(try_elsewhere(in("/var/lib/holdfast")), "");
}

TEST_F(JournalTest, KeepsRecordsInOrderAndCountsOnAfterARestart) {
  for (int restart = 0; restart < 2; ++restart) {
    Result<Journal> journal = Journal::open(host_, "/var/lib/holdfast", 1 << 20);
    ASSERT_TRUE(journal) << journal.error().message;
    for (const char* name : {"a", "b"}) {
      report::BlameRecord made = record(name);
      ASSERT_TRUE(journal->append(made));
    }
  }
  const Result<Kept> kept = read_journal(host_, "/var/lib/holdfast");
  ASSERT_TRUE(kept) << kept.error().message;
  ASSERT_EQ(kept->records.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(kept->records[i].number, i + 1);
    EXPECT_EQ(kept->records[i].container, i % 2 == 0 ? "a" : "b");
  }
}

TEST_F(JournalTest, HandsOutTheRecordsOfItsPastOnce) {
  for (int restart = 0; restart < 2; ++restart) {
    Result<Journal> journal = Journal::open(host_, "/var/lib/holdfast", 1 << 20);
    ASSERT_TRUE(journal) << journal.error().message;
    const std::vector<report::BlameRecord> history = journal->take_history();
    ASSERT_EQ(history.size(), restart == 0 ? 0U : 5U);
    EXPECT_TRUE(journal->take_history().empty());
    for (int i = 0; i < 5; ++i) {
      report::BlameRecord made = record("web");
      ASSERT_TRUE(journal->append(made));
    }
    EXPECT_EQ(restart == 0 || (history.front().number == 1 && history.back().number == 5), true);
  }
}

TEST_F(JournalTest, IsBounded) {
  constexpr std::uint64_t kSize = 20'000;
  Result<Journal> journal = Journal::open(host_, "/var/lib/holdfast", kSize);
  ASSERT_TRUE(journal) << journal.error().message;
  for (int i = 0; i < 500; ++i) {
    report::BlameRecord made = record("c" + std::to_string(i));
    ASSERT_TRUE(journal->append(made));
  }
  const Result<Kept> kept = read_journal(host_, "/var/lib/holdfast");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->records.back().container, "c499");
  EXPECT_LT(kept->records.size(), 500U);
  EXPECT_GT(kept->records.size(), 20U);
  std::size_t bytes = 0;
  for (const report::BlameRecord& one : kept->records) {
    bytes += render_line(one).size();
  }
  EXPECT_LT(bytes, 2 * kSize);
}

TEST_F(JournalTest, SkipsALineThatACrashCutShort) {
  {
    Result<Journal> journal = Journal::open(host_, "/var/lib/holdfast", 1 << 20);
    report::BlameRecord made = record("a");
    ASSERT_TRUE(journal->append(made));
  }
  std::ofstream(file_, std::ios::app) << R"({"version":1,"number":2,"conta)";
  Result<Journal> journal = Journal::open(host_, "/var/lib/holdfast", 1 << 20);
  report::BlameRecord made = record("b");
  ASSERT_TRUE(journal->append(made));
  const Result<Kept> kept = read_journal(host_, "/var/lib/holdfast");
  ASSERT_TRUE(kept);
  ASSERT_EQ(kept->records.size(), 2U);
  EXPECT_EQ(kept->records[1].container, "b");
  EXPECT_EQ(kept->damaged, 1U);
}

TEST_F(JournalTest, TailShowsNewRecordsAlsoAcrossARotation) {
  Result<Journal> journal = Journal::open(host_, "/var/lib/holdfast", 2'000);
  report::BlameRecord old = record("old");
  ASSERT_TRUE(journal->append(old));
  Result<Tail> tail = Tail::open(host_, "/var/lib/holdfast");
  ASSERT_TRUE(tail) << tail.error().message;
  std::vector<std::string> seen;
  for (int i = 0; i < 20; ++i) {
    report::BlameRecord made = record("c" + std::to_string(i));
    ASSERT_TRUE(journal->append(made));
    for (const report::BlameRecord& one : tail->wait(std::chrono::milliseconds(1000))) {
      seen.push_back(one.container);
    }
  }
  ASSERT_EQ(seen.size(), 20U);
  EXPECT_EQ(seen.front(), "c0");
  EXPECT_EQ(seen.back(), "c19");
}

TEST_F(JournalTest, IsEmptyWhenItWasNeverWritten) {
  const Result<Kept> kept = read_journal(host_, "/var/lib/holdfast");
  ASSERT_TRUE(kept);
  EXPECT_TRUE(kept->records.empty());
}

TEST_F(JournalTest, RefusesASymlinkInsteadOfItsFile) {
  ASSERT_TRUE(Journal::open(host_, "/var/lib/holdfast", 1 << 20));
  ASSERT_EQ(::unlink(file_.c_str()), 0);
  ASSERT_EQ(::symlink("/tmp/elsewhere", file_.c_str()), 0);
  EXPECT_FALSE(Journal::open(host_, "/var/lib/holdfast", 1 << 20));
}

TEST(Status, IsParsedAsItWasRendered) {
  Status status;
  status.program = {{42}, 4711, "0.1.0"};
  status.tiers.has_v2 = true;
  status.tiers.v2 = container::Tier::tracepoints;
  status.tiers.why = {"functions: refused"};
  const Result<Status> back = parse_status(render_status(status));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->program.pid, status.program.pid);
  EXPECT_EQ(back->program.started_ticks, 4711);
  EXPECT_EQ(back->tiers.v2, container::Tier::tracepoints);
  EXPECT_FALSE(back->tiers.has_v1);
  EXPECT_EQ(back->tiers.why, status.tiers.why);
  for (const char* text : {"", "{}", "[]", R"({"pid":"x"})",
                           R"({"pid":1,"started_ticks":1,"program_version":"","why":[],"v1":"?","v2":""})"}) {
    EXPECT_FALSE(parse_status(text)) << text;
  }
}

}  // namespace
}  // namespace hf::journal
