#include "adapters/journal/run_file.h"

#include <array>

#include <fcntl.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "adapters/journal/status.h"
#include "support/fake_host.h"

namespace hf::journal {
namespace {

// The processes are this host's, as the test is one of them.
class RunFile : public testing::Test {
 protected:
  void write(const std::string& text) {
    ASSERT_TRUE(write_run_file(host_, "status.json", text));
    ASSERT_EQ(::chmod(path().c_str(), 0644), 0);
  }
  void make_old() {
    const std::array<timespec, 2> long_ago = {{{1, 0}, {1, 0}}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path().c_str(), long_ago.data(), 0), 0);
  }
  [[nodiscard]] std::string problem() const { return find_problem(host_, kStatusFile, "holdfastd").value_or("none"); }
  [[nodiscard]] std::string path() const { return fake_.root() + kStatusFile; }
  [[nodiscard]] RunningProgram own() const { return own_program(host_, "1"); }

  test::FakeHost fake_{
      {{"proc/" + std::to_string(::getpid()) + "/stat", *kernel::read_text(AT_FDCWD, "/proc/self/stat")},
       {"run/other", ""},
       {"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}}};
  kernel::Host host_ = fake_.open();
};

TEST_F(RunFile, SaysWhetherItsProgramIsAlive) {
  EXPECT_EQ(problem(), "holdfastd does not run");
  write(render_status({own(), {}}));
  EXPECT_EQ(problem(), "none");
  EXPECT_TRUE(read_status(host_));
  make_old();
  EXPECT_EQ(problem(), "holdfastd hangs: no sign of life of process " + std::to_string(::getpid()) + " for over 120 s");
  EXPECT_FALSE(read_status(host_)) << "as if it did not run";
  EXPECT_TRUE(touch_run_file(host_, kStatusFile));
  EXPECT_EQ(problem(), "none");
}

TEST_F(RunFile, OfAProgramThatEndedOrThatIsDamagedSaysSo) {
  RunningProgram ended = own();
  ++ended.started_ticks;  // another process has its pid
  write(render_status({ended, {}}));
  EXPECT_EQ(problem(), "holdfastd does not run");
  write("{");
  EXPECT_NE(problem().find(kStatusFile), std::string::npos) << problem();
  write("{}");
  EXPECT_NE(problem().find("pid"), std::string::npos) << problem();
}

TEST_F(RunFile, ThatIsGoneCannotBeTouched) { EXPECT_FALSE(touch_run_file(host_, kStatusFile)); }

}  // namespace
}  // namespace hf::journal
