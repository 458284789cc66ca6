#include "adapters/nvidia/driver_cache.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

#include "kernel/files/file.h"
#include "support/fake_host.h"
#include "support/library_file.h"

namespace hf::nvidia {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVersion = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\n";

class DriverCacheTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path_of(const std::string& path) const { return fake_.root() + "/" + path; }
  // As a container that is created reads it.
  [[nodiscard]] DriverFiles read() const {
    const CachedDriver driver = *read_cached_driver(host_, "");
    EXPECT_TRUE(driver.to_cache.empty() || write_driver_cache(host_, driver.to_cache));
    return driver.files;
  }
  [[nodiscard]] std::string cache() const {
    return kernel::read_text(host_.root.get(), kernel::below_root(kDriverCache)).value_or("");
  }
  void write_cache(const std::string& text) const { std::ofstream(fake_.root() + kDriverCache) << text; }

  test::FakeHost fake_{{{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
                        {"proc/driver/nvidia/version", kVersion},
                        {"usr/lib64/libcuda.so.550.54.15", test::make_library("libcuda.so.1")},
                        {"usr/bin/nvidia-smi", "program"}}};
  kernel::Host host_ = fake_.open();
};

TEST_F(DriverCacheTest, GivesTheSameFilesASecondTime) {
  const DriverFiles first = read();
  ASSERT_NE(cache(), "");
  EXPECT_EQ(first.identities.at("/usr/lib64/libcuda.so.550.54.15").name, "libcuda.so.1");
  EXPECT_EQ(read_cached_driver(host_, "")->to_cache, "");
  const DriverFiles second = read();
  EXPECT_EQ(second.files, first.files);
  EXPECT_EQ(second.links, first.links);
  EXPECT_EQ(second.library_directories, first.library_directories);
  EXPECT_EQ(second.identities, first.identities);
  EXPECT_EQ(second.version, first.version);
}

TEST_F(DriverCacheTest, IsReadInsteadOfTheFiles) {
  (void)read();
  std::string changed = cache();
  const std::size_t at = changed.find("nvidia-smi");
  ASSERT_NE(at, std::string::npos);
  changed.replace(at, 10, "nvidia-xyz");
  write_cache(changed);
  const DriverFiles files = read();
  EXPECT_TRUE(std::ranges::any_of(files.files, [](const DriverFile& file) { return file.path.ends_with("-xyz"); }));
}

TEST_F(DriverCacheTest, EndsWithAChangeOfItsDirectoriesOrTheDriver) {
  const std::size_t before = read().files.size();
  std::ofstream(path_of("usr/lib64/libnvidia-ml.so.550.54.15")) << test::make_library("libnvidia-ml.so.1");
  EXPECT_EQ(read().files.size(), before + 1);
  std::ofstream(path_of("usr/bin/nvidia-debugdump")) << "program";
  EXPECT_EQ(read().files.size(), before + 2);
  std::ofstream(path_of("proc/driver/nvidia/version"))
      << "NVRM version: NVIDIA UNIX x86_64 Kernel Module  560.1  Tue\n";
  EXPECT_FALSE(read_cached_driver(host_, "")) << "there are no libraries of that version";
}

TEST_F(DriverCacheTest, HasTheSocketsOfNow) {
  (void)read();
  EXPECT_EQ(cache().find("nvidia-mps"), std::string::npos);
  fs::create_directories(path_of("tmp/nvidia-mps"));
  const DriverFiles files = read();
  EXPECT_EQ(std::ranges::count(files.files, FileKind::socket, &DriverFile::kind), ::geteuid() == 0 ? 1 : 0);
}

TEST_F(DriverCacheTest, ThatMakesNoSenseOrIsNotRootsIsNotUsed) {
  const DriverFiles good = read();
  const std::string text = cache();
  for (const std::string& bad :
       {std::string("x"), std::string("\n\n"), text + "file\tx\n", text + "file\t/x\t99\t\t\n"}) {
    write_cache(bad);
    EXPECT_EQ(read().files, good.files) << bad;
    EXPECT_EQ(cache(), text) << "it was written again";
  }
  fs::permissions(fake_.root() + kDriverCache, fs::perms::all);
  write_cache(text + "link\ta\tb\tc\n");
  EXPECT_EQ(read().links, good.links) << "every user could have written it";
}

TEST(DriverFilesText, RefusesNamesWithTabs) {
  DriverFiles driver;
  driver.version = "1";
  driver.files = {{"/a\tb", FileKind::binary, "", ""}};
  EXPECT_EQ(render_driver_files(driver), "");
  driver.files = {{"/a", FileKind::binary, "utility", "/b"}};
  driver.links = {{"a", "b", "c"}};
  const DriverFiles again = *parse_driver_files(render_driver_files(driver));
  EXPECT_EQ(again.files, driver.files);
  EXPECT_EQ(again.links, driver.links);
}

}  // namespace
}  // namespace hf::nvidia
