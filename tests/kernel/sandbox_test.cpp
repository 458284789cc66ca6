// Tests of the sandbox for file systems of images on the real kernel: what it permits, and what it prevents.
#include "kernel/process/sandbox.h"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "kernel/files/file.h"
#include "support/sandbox.h"

namespace hf::kernel {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kLimit{5000};

// Creates a root file system with a procfs in it, in a mount namespace of the test.
class SandboxTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::optional<std::string> why = test::why_no_kernel_tests()) {
      GTEST_SKIP() << *why;
    }
    std::string name = (fs::temp_directory_path() / "hf-sandbox-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    for (const char* path : {"root/etc", "root/proc", "root/sys", "root/host/proc", "outside"}) {
      fs::create_directories(directory_ / path);
    }
    ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    for (const char* path : {"root/proc", "root/host/proc"}) {
      ASSERT_EQ(::mount("proc", (directory_ / path).c_str(), "proc", 0, nullptr), 0);
    }
    root_ = *open_directory(AT_FDCWD, directory_ / "root");
  }
  void TearDown() override {
    for (const char* path : {"root/proc", "root/host/proc"}) {
      (void)::umount2((directory_ / path).c_str(), MNT_DETACH);
    }
    fs::remove_all(directory_);
  }

  Result<std::string> inside(const std::function<Result<std::string>()>& work, milliseconds limit = kLimit) {
    return run_in_sandbox(root_.get(), work, limit);
  }

  fs::path directory_;
  Fd root_;
};

std::string successes_of(std::initializer_list<std::pair<const char*, long>> calls) {
  std::string text;
  for (const auto& [name, result] : calls) {
    text += result >= 0 ? std::string(name) + " worked\n" : "";
  }
  return text;
}

TEST_F(SandboxTest, WorksInTheRootFileSystem) {
  const Result<std::string> done = inside([]() -> Result<std::string> {
    std::ofstream("/etc/created") << "text";
    return std::string(::access("/outside", F_OK) == 0 ? "out" : "in");
  });
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(*done, "in");
  EXPECT_EQ(*read_text(root_.get(), "etc/created"), "text");
}

TEST_F(SandboxTest, HasNoProcfsAnywhere) {
  const Result<std::string> done = inside([]() -> Result<std::string> {
    std::string found;
    for (const char* path : {"/proc", "/host/proc"}) {
      struct statfs system{};
      found += ::statfs(path, &system) == 0 && system.f_type == PROC_SUPER_MAGIC ? path : "";
    }
    return found;
  });
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(*done, "");
}

TEST_F(SandboxTest, SymlinksThroughProcLeadNowhere) {
  for (const char* link : {"var", "usr"}) {
    const std::string proc = std::string(link) == "var" ? "/proc/1/root" : "/host/proc/1/root";
    fs::create_symlink(proc + (directory_ / "outside").string(), directory_ / "root" / link);
  }
  ASSERT_TRUE(inside([]() -> Result<std::string> {
    std::ofstream("/var/mark") << "text";
    std::ofstream("/usr/mark") << "text";
    return std::string();
  }));
  EXPECT_TRUE(fs::is_empty(directory_ / "outside"));
}

TEST_F(SandboxTest, MayDoNothingBeyondFiles) {
  const Result<std::string> done = inside([]() -> Result<std::string> {
    return successes_of({{"mount", ::mount("none", "/etc", "tmpfs", 0, nullptr)},
                         {"unshare", ::unshare(CLONE_NEWNS)},
                         {"chroot", ::chroot("/etc")},
                         {"socket", ::socket(AF_UNIX, SOCK_STREAM, 0)},
                         {"mknod", ::mknod("/etc/node", S_IFCHR | 0600, makedev(1, 3))},
                         {"kill", ::kill(1, 0)},
                         {"bpf", ::syscall(SYS_bpf, 0, nullptr, 0)},
                         {"chown", ::chown("/etc", 1, 1)},
                         {"execve", ::syscall(SYS_execve, "/bin/true", nullptr, nullptr)},
                         {"fork", ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)}});
  });
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(*done, "");
}

// Otherwise a container that shares a pid namespace with the child could open the host's files through its descriptors.
TEST_F(SandboxTest, IsNotDumpableAndHoldsNoDescriptorsOfTheHost) {
  const Result<std::string> done = inside([]() -> Result<std::string> {
    std::string open;
    for (int file = 3; file < 256; ++file) {
      struct stat status{};
      open += ::fstat(file, &status) == 0 && !S_ISFIFO(status.st_mode) ? std::to_string(file) + " " : "";
    }
    return open + (::prctl(PR_GET_DUMPABLE) == 0 ? "" : "dumpable");
  });
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(*done, "");
}

TEST_F(SandboxTest, EndsAtItsDeadline) {
  const auto started = std::chrono::steady_clock::now();
  const Result<std::string> done = inside(
      []() -> Result<std::string> {
        for (;;) {
          ::pause();
        }
      },
      milliseconds(200));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, std::errc::timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(4));
}

TEST_F(SandboxTest, ReturnsTheErrorOfTheWork) {
  const Result<std::string> done =
      inside([]() -> Result<std::string> { return fail(std::errc::read_only_file_system, "the reason"); });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, std::errc::read_only_file_system);
  EXPECT_EQ(done.error().message, "the reason");
}

TEST_F(SandboxTest, ItsMountsDoNotReachTheHost) {
  const std::string before = *read_text(AT_FDCWD, "/proc/self/mountinfo");
  ASSERT_TRUE(inside([]() -> Result<std::string> { return std::string(); }));
  EXPECT_EQ(*read_text(AT_FDCWD, "/proc/self/mountinfo"), before);
}

class ProgramTest : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    busybox_ = Fd(::open("/bin/busybox", O_RDONLY | O_CLOEXEC));
    if (!busybox_ || !is_static_program(busybox_)) {
      GTEST_SKIP() << "needs a static busybox";
    }
  }
  Result<std::string> run(const std::function<std::string(const std::string&)>& script) {
    return run_program_in_sandbox(
        root_.get(),
        {busybox_,
         [&script](const std::string& result) { return std::vector<std::string>{"sh", "-c", script(result)}; }},
        kLimit);
  }

  Fd busybox_;
};

TEST_F(ProgramTest, ReturnsTheFileThatTheProgramWrites) {
  const Result<std::string> done = run([](const std::string& file) { return "echo text >" + file; });
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(*done, "text\n");
}

TEST_F(ProgramTest, EverythingElseIsReadOnly) {
  const Result<std::string> done = run([](const std::string& file) {
    return "echo x >/etc/mark; echo x >/host/mark; : >" + file + "; [ -e /proc/self ] && echo proc >" + file;
  });
  EXPECT_FALSE(fs::exists(directory_ / "root/etc/mark"));
  EXPECT_FALSE(fs::exists(directory_ / "root/host/mark"));
  EXPECT_NE(done.value_or(""), "proc\n");
}

TEST_F(ProgramTest, RunsNoProgramThatNeedsALoader) {
  const Fd dynamic(::open("/bin/true", O_RDONLY | O_CLOEXEC));
  ASSERT_FALSE(is_static_program(dynamic));
  const Result<std::string> done = run_program_in_sandbox(
      root_.get(), {dynamic, [](const std::string&) { return std::vector<std::string>{"true"}; }}, kLimit);
  EXPECT_FALSE(done);
}

}  // namespace
}  // namespace hf::kernel
