#include "adapters/nvidia/library_identity.h"

#include <cstring>
#include <fstream>
#include <string>

#include <elf.h>
#include <fcntl.h>
#include <link.h>

#include <gtest/gtest.h>

#include "support/fake_host.h"
#include "support/library_file.h"

namespace hf::nvidia {
namespace {

class LibraryIdentityTest : public testing::Test {
 protected:
  std::optional<LibraryIdentity> read(const std::string& bytes) const {
    const std::string path = directory_.root() + "/library";
    std::ofstream(path) << bytes;
    return read_library_identity(kernel::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)));
  }

  test::FakeHost directory_{{{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}}};
};

TEST_F(LibraryIdentityTest, IsTheNameThatProgramsAskFor) {
  EXPECT_EQ(read(test::make_library("libcuda.so.1")), (LibraryIdentity{"libcuda.so.1", test::kNativeLibrary}));
  EXPECT_EQ(read(test::make_library("")), (LibraryIdentity{"", test::kNativeLibrary}));
}

TEST_F(LibraryIdentityTest, OfTheCLibraryThatRunsThisTest) {
  std::string path;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        if (std::strstr(info->dlpi_name, "/libc.so.6") != nullptr) {
          *static_cast<std::string*>(found) = info->dlpi_name;
        }
        return 0;
      },
      &path);
  if (path.empty()) {
    GTEST_SKIP() << "the test is static";
  }
  EXPECT_EQ(read_library_identity(kernel::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC))),
            (LibraryIdentity{"libc.so.6", test::kNativeLibrary}));
}

TEST_F(LibraryIdentityTest, IsAbsentForAnythingElse) {
  EXPECT_FALSE(read(""));
  EXPECT_FALSE(read("#!/bin/sh\n"));
  EXPECT_FALSE(
      read("\x7f"
           "ELF\x02"));
  const std::string library = test::make_library("libcuda.so.1");
  for (std::size_t size = 0; size < library.size() - 1; ++size) {
    const std::optional<LibraryIdentity> identity = read(library.substr(0, size));
    EXPECT_TRUE(!identity || identity->name != "libcuda.so.1") << size;
  }
}

TEST_F(LibraryIdentityTest, DoesNotReadFilesWithoutASize) {
  const kernel::Fd file(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(read_library_identity(file));
  std::array<char, 4> first{};
  EXPECT_EQ(::read(file.get(), first.data(), first.size()), ssize_t(first.size())) << "nothing was taken from it";
}

TEST_F(LibraryIdentityTest, ReadsNothingOutsideOfTheFile) {
  const std::string library = test::make_library("libcuda.so.1");
  for (std::size_t at = 0; at < library.size(); ++at) {  // under ASan
    for (const char value : {'\0', '\x7f', '\xff'}) {
      std::string broken = library;
      broken[at] = value;
      (void)read(broken);
    }
  }
}

}  // namespace
}  // namespace hf::nvidia
