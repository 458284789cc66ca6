#include "services/shim/cache_plan.h"

#include <csignal>

#include <fcntl.h>
#include <sys/stat.h>

#include "services/shim/hook.h"
#include "services/shim/root_files_test.h"

namespace hf::shim {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

class CachePlanTest : public RootFilesTest {
 protected:
  // Checks that the hook has to do it, and says why.
  std::string why() {
    const RootPlan planned = plan();
    EXPECT_FALSE(planned.cache);
    EXPECT_EQ(planned.reasons.empty(), planned.rest.directories.empty());
    EXPECT_EQ(planned.rest.driver_version, planned.reasons.empty() ? "" : "550.54.15");
    EXPECT_NE(planned.links.empty(), planned.rest.links.empty()) << "either it makes them, or they are made before";
    return planned.reasons.empty() ? "" : planned.reasons.front();
  }

  std::string why_not_edited() {
    const RootPlan planned = plan();
    EXPECT_EQ(planned.cache.has_value(), planned.reasons.empty());
    return planned.reasons.empty() ? "" : planned.reasons.front();
  }

  // What the symlink at this path in the driver's directory points to; "" where none is to be made.
  std::string link(const std::string& name) {
    for (const nvidia::HookOptions::Link& link : plan().links) {
      if (link.path == std::string(kDirectory) + "/" + name) {
        return link.target;
      }
    }
    return "";
  }

  void mount(const std::string& source, const std::string& destination) {
    input_.mounts.push_back({source, destination});
  }

  void write_own_cuda() const {
    write_in_image("usr/local/cuda/compat/libcuda.so.560.10", test::make_library("libcuda.so.1"));
    fs::create_symlink("libcuda.so.560.10", root_path() + "/usr/local/cuda/compat/libcuda.so.1");
  }
};

TEST_F(CachePlanTest, AddsTheDriversLibrariesToTheCache) {
  write_cache({{"libz.so.1", "/lib/libz.so.1"}, {"libc.so.6", "/lib/libc.so.6"}});
  const RootPlan planned = plan();
  EXPECT_TRUE(planned.reasons.empty()) << planned.reasons.front();
  ASSERT_TRUE(planned.cache);
  EXPECT_EQ(list(*planned.cache),
            "/lib/libz.so.1 /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 "
            "/usr/lib/x86_64-linux-gnu/libcuda.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so /lib/libc.so.6 ");
  ASSERT_TRUE(carry_out(root_.get(), planned));
  EXPECT_EQ(read_in_image("etc/ld.so.cache"), *planned.cache);
  EXPECT_EQ(fs::read_symlink(root_path() + kDirectory + "/libcuda.so"), "libcuda.so.1");
  EXPECT_EQ(fs::read_symlink(root_path() + kDirectory + "/libnvidia-ml.so.1"), "libnvidia-ml.so.550.54.15")
      << "the name in the cache exists, also where the host had no such symlink";
  EXPECT_FALSE(plan().cache) << "nothing to do a second time";
}

TEST_F(CachePlanTest, ReplacesStaleLibrariesOfTheImage) {
  fs::create_directories(root_path() + kDirectory);
  fs::create_directory_symlink("usr/lib", root_path() + "/lib");
  write_cache({{"libcuda.so.1", "/lib/x86_64-linux-gnu/libcuda.so.1"},
               {"libcuda.so.1", "/opt/gone/libcuda.so.1"},
               {"libcuda.so.1", "/opt/there/libcuda.so.1"}});
  write_in_image("opt/there/libcuda.so.1", "text");
  const RootPlan planned = plan();
  ASSERT_TRUE(planned.cache);
  EXPECT_EQ(list(*planned.cache),
            "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so.1 "
            "/opt/there/libcuda.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so ");
}

TEST_F(CachePlanTest, LooksUpPathsWithDotsBelowTheRoot) {
  write_on_host("opt/libcuda.so.1", "outside, where as many '..' would lead");
  write_in_image("usr/local/lib64/libcuda.so.1", "text");
  fs::create_directories(root_path() + "/usr/local/bin");
  fs::create_directories(root_path() + kDirectory);
  const std::string there = "/usr/local/bin/../lib64/libcuda.so.1";
  write_cache({{"libz.so.1", "/a..b/libz.so.1"},
               {"libcuda.so.1", there},
               {"libcuda.so.1", "/usr/../../../opt/libcuda.so.1"},
               {"libcuda.so.1", "/usr/lib/.." + std::string(kDirectory).substr(4) + "/libcuda.so.1"}});
  const RootPlan planned = plan();
  EXPECT_TRUE(planned.reasons.empty()) << planned.reasons.front();
  ASSERT_TRUE(planned.cache);
  EXPECT_EQ(list(*planned.cache),
            "/a..b/libz.so.1 /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so.1 " +
                there + " /usr/lib/x86_64-linux-gnu/libcuda.so ")
      << "outside there is one, and the last one is the driver's directory under another name";
}

TEST_F(CachePlanTest, DropsWhatAnEarlierStartAddedAndIsGone) {
  const std::string directory = std::string(kDirectory) + "/";
  const std::string own = "/home/libnvidia-mine.so.1";
  write_cache({{"libz.so.1", directory + "libz.so.1"},
               {"libnvidia-tls.so.535.1", directory + "libnvidia-tls.so.535.1"},
               {"libnvidia-ptxjitcompiler.so.1", directory + "libnvidia-ptxjitcompiler.so.1"},
               {"libnvidia-present.so.1", directory + "libnvidia-present.so.1"},
               {"libnvidia-nvvm.so.4", own},
               {"libcudadebugger.so.1", "/usr/local/cuda/compat/libcudadebugger.so.1"}});
  write_in_image(directory + "libnvidia-tls.so.535.1", "");  // where it was mounted
  write_in_image(directory + "libnvidia-ptxjitcompiler.so.535.1", "");
  fs::create_symlink("libnvidia-ptxjitcompiler.so.535.1", root_path() + directory + "libnvidia-ptxjitcompiler.so.1");
  write_in_image(directory + "libnvidia-present.so.1", test::make_library("libnvidia-present.so.1"));
  ASSERT_TRUE(plan().cache);
  EXPECT_EQ(list(*plan().cache), directory + "libz.so.1 " + directory + "libnvidia-present.so.1 " + own + " " +
                                     directory + "libnvidia-ml.so.1 " + directory + "libcuda.so.1 " + directory +
                                     "libcuda.so ")
      << "only the driver's names in its directories are looked up";
  mount("/home/tls", directory + "libnvidia-tls.so.535.1");
  EXPECT_NE(list(*plan().cache).find("libnvidia-tls.so.535.1"), std::string::npos) << "the user mounts it";
}

TEST_F(CachePlanTest, DropsTheDriversNamesForCertainProcessorsThatAreGone) {
  constexpr std::uint64_t kNamedHardware = std::uint64_t(1) << 62U;
  const std::string there = std::string(kDirectory) + "/glibc-hwcaps/x86-64-v3/libnvidia-ml.so.1";
  const std::string gone = std::string(kDirectory) + "/glibc-hwcaps/x86-64-v3/libcuda.so.1";
  const std::string other = std::string(kDirectory) + "/glibc-hwcaps/x86-64-v3/libc.so.6";
  write_in_image(kLoader, "a loader");
  write_in_image("etc/ld.so.cache",
                 nvidia::render_loader_cache({{{"libnvidia-ml.so.1", there, test::kNativeLibrary, 0, kNamedHardware},
                                               {"libcuda.so.1", gone, test::kNativeLibrary, 0, kNamedHardware},
                                               {"libc.so.6", other, test::kNativeLibrary, 0, kNamedHardware}},
                                              {"x86-64-v3"}}));
  write_in_image(there, test::make_library("libnvidia-ml.so.1"));
  const RootPlan planned = plan();
  ASSERT_TRUE(planned.cache);
  EXPECT_EQ(list(*planned.cache), there + " " + kDirectory + "/libnvidia-ml.so.1 " + kDirectory + "/libcuda.so.1 " +
                                      kDirectory + "/libcuda.so " + other + " ");
}

TEST_F(CachePlanTest, LeavesACacheToTheUserWhoMountsOne) {
  write_cache({});
  fs::create_directory_symlink("etc", root_path() + "/alias");
  for (const char* destination : {"/etc/ld.so.cache", "/alias/ld.so.cache"}) {
    mount("/home/cache", destination);
    const RootPlan planned = plan();
    EXPECT_FALSE(planned.cache);
    EXPECT_TRUE(planned.reasons.empty()) << "the hook could not write it either";
    EXPECT_EQ(planned.notes, std::vector<std::string>{"a volume covers /etc/ld.so.cache"});
    input_.mounts.pop_back();
  }
  EXPECT_TRUE(plan().cache);
}

TEST_F(CachePlanTest, FollowsAFewSymlinksWithNamesOfLibrariesOnly) {
  const std::string directory = std::string(kDirectory) + "/";
  const auto add_links = [&](std::size_t count) {
    std::vector<std::pair<std::string, std::string>> libraries;
    fs::create_directories(root_path() + directory);
    for (std::size_t i = count; i > 0; --i) {
      const std::string name = "libcudax.so." + std::to_string(i);
      fs::remove(root_path() + directory + name);
      fs::create_symlink("nowhere", root_path() + directory + name);
      libraries.emplace_back(name, directory + name);
    }
    write_cache(libraries);
  };
  add_links(200);
  EXPECT_EQ(why_not_edited(), "");
  add_links(300);
  EXPECT_EQ(why(), "the image's loader's cache has too many libraries that may be left from another driver");
}

TEST_F(CachePlanTest, PrefersNewerCudaLibrariesOfTheImage) {
  write_cache({});
  const std::string compat = "usr/local/cuda/compat/";
  write_in_image(compat + "libcuda.so.560.10", test::make_library("libcuda.so.1"));
  write_in_image(compat + "libwithoutlink.so.2.0", test::make_library("libwithoutlink.so.2"));
  write_in_image(compat + "README", "text");
  ASSERT_EQ(::mkfifo((root_path() + "/" + compat + "libfifo.so.1").c_str(), 0600), 0);
  fs::create_symlink("libcuda.so.560.10", root_path() + "/" + compat + "libcuda.so.1");
  ASSERT_TRUE(plan().cache);
  EXPECT_EQ(list(*plan().cache),
            "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 /usr/local/cuda/compat/libcuda.so.1 "
            "/usr/lib/x86_64-linux-gnu/libcuda.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so ");
  fs::rename(root_path() + "/" + compat + "libcuda.so.560.10", root_path() + "/" + compat + "libcuda.so.540.10");
  EXPECT_EQ(list(*plan().cache),
            "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so.1 "
            "/usr/lib/x86_64-linux-gnu/libcuda.so ");
}

TEST_F(CachePlanTest, PrefersNewerCudaLibrariesOfTheImageUnderTheNamesForLinkingToo) {
  write_cache({});
  write_own_cuda();
  const std::string compat = root_path() + "/usr/local/cuda/compat/";
  fs::create_symlink("libcuda.so.1", compat + "libcuda.so");
  fs::create_symlink("libcuda.so.1", compat + "libother.so");
  write_in_image("usr/local/cuda/compat/libcopy.so", test::make_library("libcopy.so.1"));
  const RootPlan planned = plan();
  ASSERT_TRUE(planned.cache);
  EXPECT_EQ(list(*planned.cache),
            "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 "
            "/usr/local/cuda/compat/libcuda.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so.1 "
            "/usr/local/cuda/compat/libcuda.so /usr/lib/x86_64-linux-gnu/libcuda.so ")
      << "as ldconfig, only symlinks whose names the library's begins with";
}

TEST_F(CachePlanTest, ListsNewerCudaLibrariesOnceWhereTheImageListsThemUnderAnotherName) {
  write_in_image("usr/local/cuda-12.4/compat/libcuda.so.560.10", test::make_library("libcuda.so.1"));
  fs::create_symlink("libcuda.so.560.10", root_path() + "/usr/local/cuda-12.4/compat/libcuda.so.1");
  fs::create_directory_symlink("cuda-12.4", root_path() + "/usr/local/cuda");
  write_cache({{"libcuda.so.1", "/usr/local/cuda-12.4/compat/libcuda.so.1"}});
  ASSERT_TRUE(plan().cache);
  EXPECT_EQ(list(*plan().cache),
            "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 /usr/local/cuda/compat/libcuda.so.1 "
            "/usr/lib/x86_64-linux-gnu/libcuda.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so ");
}

TEST_F(CachePlanTest, LeavesItToTheHookWhereListedCudaLibrariesAreNotNewerAnyMore) {
  write_cache({});
  write_own_cuda();
  ASSERT_TRUE(carry_out(root_.get(), plan()));
  EXPECT_TRUE(plan().reasons.empty());
  const std::string compat = root_path() + "/usr/local/cuda/compat/";
  fs::rename(compat + "libcuda.so.560.10", compat + "libcuda.so.540.10");
  fs::remove(compat + "libcuda.so.1");
  fs::create_symlink("libcuda.so.540.10", compat + "libcuda.so.1");
  EXPECT_EQ(why(), "the image's loader's cache lists CUDA libraries that are not newer than the driver's");
}

TEST_F(CachePlanTest, WritesNoCacheWhereNoneIsNeeded) {
  EXPECT_FALSE(plan().cache) << "no loader";
  EXPECT_TRUE(plan().reasons.empty());
  write_in_image("lib/ld-musl-x86_64.so.1", "musl");
  EXPECT_TRUE(plan().reasons.empty()) << "musl";
  write_in_image(kLoader, "x\0/lib/x86_64-linux-gnu/\0/usr/lib/x86_64-linux-gnu/\0y"s);
  EXPECT_FALSE(plan().cache) << "the loader searches the directory";
  EXPECT_TRUE(plan().reasons.empty());
}

TEST_F(CachePlanTest, WritesANewCacheWhereTheLoaderWouldNotFindTheDriver) {
  write_in_image(kLoader, "/lib64/\0/usr/lib64/\0"s);
  const RootPlan planned = plan();
  EXPECT_TRUE(planned.reasons.empty());
  ASSERT_TRUE(planned.cache);
  EXPECT_EQ(list(*planned.cache),
            "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so.1 "
            "/usr/lib/x86_64-linux-gnu/libcuda.so ");
}

TEST_F(CachePlanTest, WritesANewCacheWhereTheLoaderWouldFindAnotherDriverFirst) {
  write_in_image(kLoader, "\0/lib/x86_64-linux-gnu/\0/usr/lib/x86_64-linux-gnu/\0/lib/\0"s);
  write_in_image("lib/libcuda.so.1", "in a directory that it searches later");
  EXPECT_FALSE(plan().cache);
  write_in_image("lib/x86_64-linux-gnu/libcuda.so.1", "of another driver");
  ASSERT_TRUE(plan().cache);
  EXPECT_EQ(list(*plan().cache).find("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 "), 0U);
  write_in_image("etc/ld.so.conf", "/opt/lib\n");
  EXPECT_EQ(why(), "the image has no loader's cache but an ld.so.conf");
  fs::remove_all(root_path() + "/lib");
  write_in_image(std::string(kDirectory) + "/libcuda.so.1", "of another driver");
  fs::create_directory_symlink("usr/lib", root_path() + "/lib");
  EXPECT_EQ(why(), "") << "it is the same directory";
}

TEST_F(CachePlanTest, WritesANewCacheWhereTheLoaderSearchesADirectoryWithALongerName) {
  write_in_image(kLoader, "\0/opt/usr/lib/x86_64-linux-gnu/\0"s);
  EXPECT_TRUE(plan().cache);
}

TEST_F(CachePlanTest, TakesIdentitiesThatAreKnown) {
  write_cache({});
  input_.identities["/driver/libcuda.so.550.54.15"] = {"libknown.so.7", test::kNativeLibrary};
  EXPECT_NE(list(*plan().cache).find("/libknown.so.7 "), std::string::npos);
}

TEST_F(CachePlanTest, LeavesItToTheHookWhereItCannotDecide) {
  write_in_image(kLoader, "/lib64/\0/usr/lib64/\0"s);
  write_in_image("etc/ld.so.conf", "/opt/lib\n");
  EXPECT_EQ(why(), "the image has no loader's cache but an ld.so.conf");
  write_in_image("etc/ld.so.cache", "something else");
  EXPECT_EQ(why(), "read the loader's cache: it has another format");
  write_cache({{"liba.so", "/lib/liba.so"}, {"libb.so", "/lib/libb.so"}});
  EXPECT_EQ(why(), "the image's loader's cache has names out of order, or that the loader cannot compare");
  write_cache({{"../x", "/lib/x"}});
  EXPECT_NE(why().find("impossible name"), std::string::npos);
  write_cache({});
  fs::remove(root_path() + "/" + kLoader);
  EXPECT_EQ(why(), "the image has a loader's cache, but no loader of this architecture");
}

TEST_F(CachePlanTest, LeavesItToTheHookWhereTheLoaderCannotOrderANameOfTheImage) {
  write_cache({{"libx.so.4000000000", "/lib/libx.so.4000000000"}});
  EXPECT_NE(why().find("that the loader cannot compare"), std::string::npos) << why();
  write_cache({{"lib\xc3\xa4.so", "/lib/lib\xc3\xa4.so"}});
  EXPECT_NE(why().find("that the loader cannot compare"), std::string::npos) << why();
  write_cache({});
  write_own_cuda();
  EXPECT_EQ(why_not_edited(), "");
  const std::string name = "libnvidia-own.so.4000000000";
  write_in_image("usr/local/cuda/compat/" + name, test::make_library(name));
  EXPECT_NE(why().find("that the loader cannot compare"), std::string::npos) << why();
}

TEST_F(CachePlanTest, LeavesItToTheHookWhereTheCacheCannotBeRead) {
  write_in_image(kLoader, "a loader");
  const std::string cache = root_path() + "/etc/ld.so.cache";
  fs::create_directories(cache);
  EXPECT_EQ(why(), "open /etc/ld.so.cache: not a regular file");
  fs::remove(cache);
  ASSERT_EQ(::mkfifo(cache.c_str(), 0600), 0);
  EXPECT_EQ(why(), "open /etc/ld.so.cache: not a regular file") << "and it does not wait for a writer";
  fs::remove(cache);
  write_in_image("etc/ld.so.cache", "");
  fs::resize_file(cache, (std::uintmax_t(16) << 20U) + 1);
  EXPECT_EQ(why(), "read /etc/ld.so.cache: it is too large");
  fs::remove(cache);
  fs::create_symlink("ld.so.cache", cache);
  EXPECT_NE(why(), "") << "a symlink to itself";
}

TEST_F(CachePlanTest, LeavesItToTheHookWhereALibraryCannotBeRead) {
  const std::string directory = std::string(kDirectory) + "/";
  write_cache({{"libnvidia-tls.so.1", directory + "libnvidia-tls.so.1"}});
  const std::string path = root_path() + directory + "libnvidia-tls.so.1";
  write_in_image(directory + "libnvidia-tls.so.1", test::make_library("libnvidia-tls.so.1"));
  EXPECT_EQ(why_not_edited(), "");
  (void)::signal(SIGIO, SIG_IGN);  // the kernel tells the holder of a lease
  {
    const kernel::Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::fcntl(file.get(), F_SETLEASE, F_WRLCK), 0);
    EXPECT_NE(why().find("libnvidia-tls.so.1"), std::string::npos) << "it may be there";
  }
  (void)::signal(SIGIO, SIG_DFL);
  fs::remove(path);
  fs::create_symlink("libnvidia-tls.so.1", path);
  EXPECT_NE(why().find("libnvidia-tls.so.1"), std::string::npos) << "a symlink to itself";
  fs::remove(path);
  fs::create_symlink("nowhere", path);
  EXPECT_EQ(why_not_edited(), "") << "it is not there";
}

// Its target may be a library, which the image's programs would lose.
TEST_F(CachePlanTest, ReplacesNoSymlinkOfTheImageWhoseTargetCannotBeRead) {
  write_cache({});
  const std::string directory = std::string(kDirectory).substr(1) + "/";
  fs::create_directories(root_path() + "/" + directory);
  fs::create_symlink("libnvidia-ml.so.1", root_path() + "/" + directory + "libnvidia-ml.so.1");
  const RootPlan planned = plan();
  EXPECT_EQ(planned.reasons.size(), 1U);
  EXPECT_TRUE(planned.links.empty());
  EXPECT_EQ(planned.rest.links, options_.links);
  input_.is_read_only = true;
  EXPECT_TRUE(plan().rest.links.empty()) << "the hook could not make them either";
}

TEST_F(CachePlanTest, LeavesItToTheHookWhereTheLoaderCannotBeRead) {
  fs::create_directories(root_path() + "/" + kLoader);
  EXPECT_EQ(why(), "open /"s + kLoader + ": not a regular file");
}

TEST_F(CachePlanTest, FindsNewerCudaLibrariesWithoutACache) {
  write_own_cuda();
  EXPECT_EQ(why(), "") << "no loader";
  write_in_image(kLoader, "/usr/lib/x86_64-linux-gnu/\0"s);
  ASSERT_TRUE(plan().cache) << "the loader would search the driver's directory only";
  EXPECT_EQ(list(*plan().cache).find("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 /usr/local/cuda/compat/libcuda.so.1"),
            0U);
  write_in_image("etc/ld.so.conf", "/opt/lib\n");
  EXPECT_EQ(why(), "the image has no loader's cache but an ld.so.conf");
}

TEST_F(CachePlanTest, LooksUpAFewPathsOfTheCacheOnly) {
  const auto write_alike = [this](std::size_t count) {
    std::vector<std::pair<std::string, std::string>> libraries;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string directory = "/opt/" + std::to_string(i);
      write_in_image(directory + "/libcuda.so.1", "text");
      libraries.emplace_back("libcuda.so.1", directory + "/libcuda.so.1");
    }
    write_cache(libraries);
  };
  write_alike(60);
  EXPECT_EQ(why_not_edited(), "");
  write_alike(600);
  EXPECT_EQ(why(), "too many paths of the image would have to be looked up");
}

// Each part of their paths is a symlink, and nothing is at their end.
TEST_F(CachePlanTest, LooksUpAFewPartsOfPathsOfTheCacheOnly) {
  fs::create_directories(root_path() + "/a");
  fs::create_symlink(".", root_path() + "/a/a");
  std::string deep = "/a";
  for (int i = 0; i < 20; ++i) {
    deep += "/a";
  }
  const auto write_deep = [&](std::size_t count) {
    constexpr std::uint64_t kNamedHardware = std::uint64_t(1) << 62U;
    std::vector<std::string> paths;
    std::vector<nvidia::CachedLibrary> libraries;
    for (std::size_t i = 0; i < count; ++i) {
      paths.push_back(deep + "/" + std::to_string(i) + "/b/c/d/libcuda.so.1");
    }
    for (const std::string& path : paths) {
      libraries.push_back({"libcuda.so.1", path, test::kNativeLibrary, 0, kNamedHardware});
    }
    write_in_image(kLoader, "a loader");
    write_in_image("etc/ld.so.cache", nvidia::render_loader_cache({libraries, {"x86-64-v3"}}));
  };
  write_deep(10);
  EXPECT_EQ(why_not_edited(), "");
  write_deep(250);
  EXPECT_EQ(why(), "too many paths of the image would have to be looked up");
}

TEST_F(CachePlanTest, LeavesSymlinksToTheHookWhereTheMountsTakeTooManyLookups) {
  write_cache({});
  for (int i = 0; i < 600; ++i) {
    mount("/home", "/missing" + std::to_string(i) + "/file");
  }
  const RootPlan planned = plan();
  EXPECT_EQ(planned.reasons, std::vector<std::string>{"too many paths of the image would have to be looked up"});
  EXPECT_TRUE(planned.links.empty());
  EXPECT_EQ(planned.rest.links, options_.links);
  EXPECT_EQ(planned.rest.directories, options_.directories);
  EXPECT_FALSE(planned.cache);
}

TEST_F(CachePlanTest, LooksUpAFewLeftOversOfTheCacheOnly) {
  const auto write_left_over = [this](std::size_t count) {
    std::vector<std::pair<std::string, std::string>> libraries;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = "libcuda.so." + std::to_string(i);
      libraries.emplace_back(name, "/usr/local/cuda/compat/" + name);
    }
    std::ranges::sort(libraries,
                      [](const auto& a, const auto& b) { return ::strverscmp(b.first.c_str(), a.first.c_str()) < 0; });
    write_cache(libraries);
  };
  write_left_over(256);
  EXPECT_EQ(why_not_edited(), "");
  write_left_over(257);
  EXPECT_EQ(why(), "the image's loader's cache has too many libraries that may be left from another driver");
}

TEST_F(CachePlanTest, LooksUpEachDirectoryOfTheCacheOnce) {
  fs::create_directories(root_path() + kDirectory);
  fs::create_directory_symlink("usr/lib", root_path() + "/lib");
  write_cache(std::vector(1000, std::pair("libcuda.so.1"s, "/lib/x86_64-linux-gnu/libcuda.so.1"s)));
  EXPECT_EQ(why_not_edited(), "");
}

TEST_F(CachePlanTest, ReadsAFewLibrariesOfTheImageOnly) {
  write_cache({});
  write_own_cuda();
  const std::string compat = "usr/local/cuda/compat/";
  for (std::size_t i = 0; i < 60; ++i) {
    write_in_image(compat + "libmore" + std::to_string(i) + ".so", "text");
  }
  EXPECT_EQ(why_not_edited(), "");
  for (std::size_t i = 60; i < 64; ++i) {
    write_in_image(compat + "libmore" + std::to_string(i) + ".so", "text");
  }
  EXPECT_EQ(why(), "the image has too many files in /usr/local/cuda/compat");
}

TEST_F(CachePlanTest, MakesNoLinkWhereTheUserMountsAFile) {
  write_cache({});
  options_.links.push_back({"libcuda.so.550.54.15", std::string(kDirectory) + "/libcuda.so.1"});
  EXPECT_EQ(link("libcuda.so.1"), "libcuda.so.550.54.15");
  EXPECT_EQ(link("libnvidia-ml.so.1"), "libnvidia-ml.so.550.54.15");
  fs::create_directories(root_path() + kDirectory);
  fs::create_directory_symlink("usr/lib", root_path() + "/lib");
  mount("/home/stub", std::string(kDirectory) + "/libcuda.so.1");
  mount("/home/stub", "/lib/x86_64-linux-gnu//libnvidia-ml.so.1");
  EXPECT_EQ(link("libcuda.so.1"), "") << "the driver's file would be covered instead";
  EXPECT_EQ(link("libnvidia-ml.so.1"), "") << "the same directory under another name";
  EXPECT_EQ(link("libcuda.so"), "libcuda.so.1");
}

TEST_F(CachePlanTest, MakesNoLinkToALibraryOfTheUser) {
  write_cache({});
  write_on_host("home/libmine.so.1.2", test::make_library("libmine.so.1"));
  write_on_host("home/libother.so.1", test::make_library("libother.so.1"));
  write_on_host("driver/libnvidia-evil.so.550.54.15", test::make_library("../libevil.so.1"));
  mount("/home/libmine.so.1.2", std::string(kDirectory) + "/libmine.so.1.2");
  mount("/home/libother.so.1", std::string(kDirectory) + "/libother.so.1");
  mount("/driver/libnvidia-evil.so.550.54.15", std::string(kDirectory) + "/libnvidia-evil.so.550.54.15");
  const RootPlan planned = plan();
  EXPECT_EQ(planned.links.size(), 3U) << "libcuda.so, libcuda.so.1 and libnvidia-ml.so.1";
  ASSERT_TRUE(planned.cache);
  EXPECT_EQ(list(*planned.cache).find("libmine"), std::string::npos);
  EXPECT_NE(list(*planned.cache).find("libother.so.1"), std::string::npos) << "programs find it by its own name";
  EXPECT_EQ(list(*planned.cache).find("evil"), std::string::npos);
}

TEST_F(CachePlanTest, LeavesSymlinksOfTheImageThatTheDriverDoesNotHave) {
  write_cache({});
  const std::string directory = std::string(kDirectory).substr(1) + "/";
  write_in_image(directory + "libnvidia-ml.so.450", test::make_library("libnvidia-ml.so.1"));
  fs::create_symlink("libnvidia-ml.so.450", root_path() + "/" + directory + "libnvidia-ml.so.1");
  EXPECT_EQ(link("libnvidia-ml.so.1"), "");
  fs::remove(root_path() + "/" + directory + "libnvidia-ml.so.450");
  EXPECT_EQ(link("libnvidia-ml.so.1"), "libnvidia-ml.so.550.54.15") << "one that leads nowhere";
  write_in_image(directory + "libnvidia-ml.so.450", "");
  EXPECT_EQ(link("libnvidia-ml.so.1"), "libnvidia-ml.so.550.54.15") << "of an earlier start, with an older driver";
}

TEST_F(CachePlanTest, LeavesItToTheHookWhereAVolumeCoversWhatWasRead) {
  write_cache({});
  fs::create_directories(root_path() + "/usr/local/cuda-12.4/compat");
  fs::create_directory_symlink("cuda-12.4", root_path() + "/usr/local/cuda");
  fs::create_directories(root_path() + kDirectory);
  fs::create_directory_symlink("usr/lib", root_path() + "/lib");
  for (const auto& [destination, covered] :
       {std::pair("/etc/", "/etc"), std::pair("/usr", kDirectory), std::pair(kDirectory, kDirectory),
        std::pair("/lib", kDirectory), std::pair("//usr/local/", kCompat), std::pair("/usr/local/cuda", kCompat),
        std::pair("/usr/local/cuda-12.4", kCompat), std::pair(kCompat, kCompat)}) {
    mount("/volume", destination);
    EXPECT_EQ(why(), "a volume covers "s + covered) << destination;
    input_.mounts.pop_back();
  }
  for (const char* destination :
       {"/etc/hosts", "/usr/local/lib", "/etcetera", "/proc", "/usr/lib/x86_64-linux-gnu/x"}) {
    mount("/volume", destination);
    EXPECT_EQ(why_not_edited(), "") << destination;
    input_.mounts.pop_back();
  }
}

}  // namespace
}  // namespace hf::shim
