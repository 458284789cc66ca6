#include "kernel/files/rooted_fs.h"

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "kernel/files/container_fs.h"
#include "kernel/files/file.h"
#include "support/fake_host.h"

namespace hf::kernel {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class RootedFsTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return fake_.root() + "/" + name; }

  test::FakeHost fake_{
      {{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}, {"lib/file", "text"}}};
  Host host_ = fake_.open();
};

// A child that holds a write lease on the file, and never gives it up by itself.
class Holder {
 public:
  explicit Holder(const std::string& path) {
    std::array<int, 2> ready{};
    EXPECT_EQ(::pipe(ready.data()), 0);
    child_ = ::fork();
    if (child_ == 0) {
      (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
      (void)std::signal(SIGIO, SIG_IGN);
      const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
      const char answer = ::fcntl(file, F_SETLEASE, F_WRLCK) == 0 ? 'y' : 'n';
      (void)!::write(ready[1], &answer, 1);
      ::pause();
      ::_exit(0);
    }
    char answer = 'n';
    (void)!::read(ready[0], &answer, 1);
    ::close(ready[0]);
    ::close(ready[1]);
    EXPECT_EQ(answer, 'y');
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

 private:
  pid_t child_ = -1;
};

TEST_F(RootedFsTest, DoesNotWaitForTheHolderOfALease) {
  const Holder holder(path("lib/file"));
  const Fd lib = *open_directory_in(host_.root.get(), "lib");
  const auto began = std::chrono::steady_clock::now();
  for (const Result<Fd>& file : {open_file_in(host_.root.get(), "lib/file"), open_file_at(lib.get(), "file")}) {
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, std::errc::resource_unavailable_try_again);
  }
  EXPECT_EQ(read_start_in(host_.root.get(), "lib/file", 2), "");
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s) << "the kernel's lease-break-time is 45 s";
}

TEST_F(RootedFsTest, OpensRegularFilesOfADirectoryOnly) {
  fs::create_symlink("file", path("lib/link"));
  ASSERT_EQ(::mkfifo(path("lib/fifo").c_str(), 0600), 0);
  const Fd lib = *open_directory_in(host_.root.get(), "lib");
  EXPECT_TRUE(open_file_at(lib.get(), "file"));
  EXPECT_EQ(open_file_at(lib.get(), "link").error().code, std::errc::too_many_symbolic_link_levels);
  EXPECT_EQ(open_file_at(lib.get(), "fifo").error().code, std::errc::invalid_argument);
  EXPECT_EQ(open_file_at(lib.get(), "none").error().code, std::errc::no_such_file_or_directory);
  EXPECT_EQ(open_file_at(lib.get(), "..").error().code, std::errc::invalid_argument);
}

TEST_F(RootedFsTest, StaysOnTheMountOfTheRootWhereThatIsWanted) {
  const Fd ours(::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
  if (::unshare(CLONE_NEWNS) < 0) {
    GTEST_SKIP() << "needs root for a mount";
  }
  ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  const Fd root = *open_directory(AT_FDCWD, fake_.root());  // in this mount namespace
  fs::create_directory(path("volume"));
  ASSERT_EQ(::mount("none", path("volume").c_str(), "tmpfs", 0, nullptr), 0);
  const Fd made(::open(path("volume/file").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  EXPECT_TRUE(open_file_in(root.get(), "volume/file"));
  EXPECT_EQ(open_file_in(root.get(), "volume/file", Mounts::of_root).error().code, std::errc::cross_device_link);
  EXPECT_TRUE(open_file_in(root.get(), "lib/file", Mounts::of_root));
  ::umount2(path("volume").c_str(), MNT_DETACH);
  EXPECT_EQ(::setns(ours.get(), CLONE_NEWNS), 0);
}

TEST_F(RootedFsTest, NewDirectoriesCanBeEnteredWhateverTheUmask) {
  const mode_t before = ::umask(077);
  const Result<Fd> made = make_directory_inside(host_.root.get(), "/usr/lib/x86_64-linux-gnu");
  ::umask(before);
  ASSERT_TRUE(made) << made.error().message;
  for (const char* name : {"usr", "usr/lib", "usr/lib/x86_64-linux-gnu"}) {
    EXPECT_EQ(fs::status(path(name)).permissions(), fs::perms(0755)) << name;
  }
}

}  // namespace
}  // namespace hf::kernel
