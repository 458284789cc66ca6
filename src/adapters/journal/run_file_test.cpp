#include "adapters/journal/run_file.h"

#include <array>

#include <fcntl.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "adapters/journal/status.h"
#include "kernel/process/process.h"
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

  static std::pair<const std::string, std::string> process(pid_t pid) {
    const std::string path = "proc/" + std::to_string(pid) + "/stat";
    return {path, *kernel::read_text(AT_FDCWD, "/" + path)};
  }

  test::FakeHost fake_{{process(::getpid()),
                        process(::getppid()),
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
  EXPECT_EQ(problem(), "holdfastd hangs: no heartbeat of process " + std::to_string(::getpid()) + " for over 120 s");
  EXPECT_FALSE(read_status(host_)) << "as if it did not run";
  EXPECT_TRUE(renew_run_file(host_, kStatusFile));
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

TEST_F(RunFile, IsTakenOverFromAnInstanceThatIsNotAliveOnly) {
  EXPECT_FALSE(renew_run_file(host_, kStatusFile)) << "there is none";
  RunningProgram other = own();
  other.pid.value = ::getppid();
  other.started_ticks = kernel::read_process(host_, other.pid)->started_at;
  write(render_status({other, {}}));
  EXPECT_TRUE(renew_run_file(host_, kStatusFile));
  remove_run_file(host_, kStatusFile);
  make_old();
  EXPECT_FALSE(renew_run_file(host_, kStatusFile)) << "it hangs, and its file was left alone";
  EXPECT_NE(problem(), "none");
  remove_run_file(host_, kStatusFile);
  EXPECT_EQ(problem(), "holdfastd does not run");
  ++other.started_ticks;
  write(render_status({other, {}}));
  EXPECT_FALSE(renew_run_file(host_, kStatusFile)) << "it has ended";
}

}  // namespace
}  // namespace hf::journal
