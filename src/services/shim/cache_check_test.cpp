#include "services/shim/cache_check.h"

#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "kernel/file.h"
#include "support/fake_host.h"
#include "support/loader_cache.h"

namespace hf::shim {
namespace {

namespace fs = std::filesystem;

using Libraries = std::vector<std::pair<std::string, std::string>>;

// A container that was started before: two libraries of the driver, one of them known by its link.
class CacheCheck : public testing::Test {
 protected:
  void SetUp() override {
    words_.folders = {"/usr/lib"};
    words_.links = {{"libcuda.so.550.54.15", "/usr/lib/libcuda.so.1"}};
    words_.driver_version = "550.54.15";
    fs::create_directories(root() + "/usr/lib");
    fs::create_directories(root() + "/etc/ld.so.conf.d");
    for (const char* name : {"libcuda.so.550.54.15", "libnvidia-gpucomp.so.550.54.15", "libother.so.1"}) {
      write("/usr/lib/" + std::string(name), "text");
    }
    for (const char* path : {"/usr/lib", "/etc/ld.so.conf.d"}) {
      set_time(path, 1000);
    }
    write_cache({kCuda, kCompiler});
    root_ = *kernel::open_directory(AT_FDCWD, root());
  }

  [[nodiscard]] std::string root() const { return folder_.root() + "/root"; }
  void write(const std::string& path, const std::string& text) const { std::ofstream(root() + path) << text; }
  void set_time(const std::string& path, time_t seconds) const {
    const timespec times[2] = {{seconds, 0}, {seconds, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (root() + path).c_str(), times, 0), 0);
  }
  void write_cache(const Libraries& libraries) const {
    write("/etc/ld.so.cache", test::make_loader_cache(libraries));
    set_time("/etc/ld.so.cache", 2000);
  }
  [[nodiscard]] bool is_current() const { return is_cache_current(root_.get(), words_); }

  const Libraries::value_type kCuda = {"libcuda.so.1", "/usr/lib/libcuda.so.1"};
  const Libraries::value_type kCompiler = {"libnvidia-gpucomp.so.550.54.15", "/usr/lib/libnvidia-gpucomp.so.550.54.15"};
  test::FakeHost folder_{{{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}}};
  HookWords words_;
  kernel::Fd root_;
};

TEST_F(CacheCheck, ACacheThatKnowsAllLibrariesStays) { EXPECT_TRUE(is_current()); }

TEST_F(CacheCheck, ALibraryThatItLacksIsMissed) {
  write_cache({kCuda});
  EXPECT_FALSE(is_current());
  write_cache({kCompiler});
  EXPECT_FALSE(is_current());
  write_cache({{"libcuda.so.1", "/opt/libcuda.so.1"}, kCompiler});
  EXPECT_FALSE(is_current()) << "one of another folder";
}

TEST_F(CacheCheck, WhatChangedSinceIsLookedAtAgain) {
  for (const char* path : {"/usr/lib", "/etc/ld.so.conf.d"}) {
    set_time(path, 2001);
    EXPECT_FALSE(is_current()) << path;
    set_time(path, 2000);
    EXPECT_TRUE(is_current()) << path;
  }
  write("/etc/ld.so.conf", "/opt");
  EXPECT_FALSE(is_current());
}

TEST_F(CacheCheck, WhatIsNoCacheIsNotRead) {
  const std::string cache = root() + "/etc/ld.so.cache";
  write("/etc/ld.so.cache", "something else");
  EXPECT_FALSE(is_current());
  fs::remove(cache);
  EXPECT_FALSE(is_current());
  write("/etc/real", test::make_loader_cache({kCuda, kCompiler}));
  fs::create_symlink("real", cache);
  EXPECT_FALSE(is_current()) << "a link";
  fs::remove(cache);
  ASSERT_EQ(::mkfifo(cache.c_str(), 0600), 0);
  EXPECT_FALSE(is_current()) << "a pipe";
}

TEST_F(CacheCheck, WithoutAVersionNobodyKnowsWhichLibrariesCount) {
  words_.driver_version = "";
  EXPECT_FALSE(is_current());
}

}  // namespace
}  // namespace hf::shim
