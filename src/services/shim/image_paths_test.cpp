#include "services/shim/image_paths.h"

#include "services/shim/root_files_test.h"

namespace hf::shim {
namespace {

namespace fs = std::filesystem;

class ImagePathsTest : public RootFilesTest {
 protected:
  void SetUp() override {
    RootFilesTest::SetUp();
    fs::create_directories(root_path() + "/usr/lib/gnu");
    fs::create_directory_symlink("usr/lib", root_path() + "/lib");
    fs::create_directory_symlink("/lib/gnu", root_path() + "/alias");
    fs::create_symlink("libcuda.so.1", root_path() + "/usr/lib/gnu/dangling");
    fs::create_symlink("/alias/new/file", root_path() + "/usr/lib/gnu/farther");
    fs::create_symlink("loop", root_path() + "/usr/lib/gnu/loop");
  }

  std::string end_of(const std::string& path) { return ImagePaths(root_.get(), {}).follow(path); }
  bool is_mounted(const std::string& destination, const std::string& path) {
    return ImagePaths(root_.get(), {{"/source", destination}}).is_mounted(path);
  }
  std::string covered(const std::string& destination, const std::string& directory) {
    return ImagePaths(root_.get(), {{"/source", destination}}).find_covered({directory}).value_or("");
  }
};

TEST_F(ImagePathsTest, LeadWhereARuntimeWouldMount) {
  for (const auto& [path, end] :
       std::vector<std::pair<std::string, std::string>>{{"/", "/"},
                                                        {"/usr//lib/./gnu/", "/usr/lib/gnu"},
                                                        {"/lib/gnu", "/usr/lib/gnu"},
                                                        {"/alias/missing", "/usr/lib/gnu/missing"},
                                                        {"/alias/..", "/usr/lib"},
                                                        {"/alias/../gnu/../x", "/usr/lib/x"},
                                                        {"/missing/../alias/x/y", "/usr/lib/gnu/x/y"},
                                                        {"/missing/deep/../../lib", "/usr/lib"},
                                                        {"/../../lib/x", "/usr/lib/x"},
                                                        {"/alias/dangling", "/usr/lib/gnu/libcuda.so.1"},
                                                        {"/alias/farther", "/usr/lib/gnu/new/file"},
                                                        {"/alias/loop", "/"}}) {
    EXPECT_EQ(end_of(path), end) << path;
  }
  std::string deep;
  for (int i = 0; i < 1000; ++i) {
    deep += "/d";
  }
  EXPECT_EQ(end_of(deep), "/") << "not looked up part by part";
}

TEST_F(ImagePathsTest, AreMountedUnderAnyName) {
  const std::string library = "/usr/lib/gnu/libcuda.so.1";
  for (const char* destination :
       {"/usr/lib/gnu/libcuda.so.1", "/alias/libcuda.so.1", "/usr/lib/gnu/../gnu/libcuda.so.1",
        "/missing/../lib/gnu/libcuda.so.1", "/lib/gnu/dangling"}) {
    EXPECT_TRUE(is_mounted(destination, library)) << destination;
  }
  EXPECT_TRUE(is_mounted("/usr/new/../new/libcuda.so.1", "/usr/new/libcuda.so.1")) << "in a missing directory";
  EXPECT_TRUE(is_mounted("/lib/gnu/dangling", "/usr/lib/gnu/dangling")) << "the link itself is not to be replaced";
  EXPECT_FALSE(is_mounted("/usr/lib/libcuda.so.1", library));
}

TEST_F(ImagePathsTest, AreCoveredByMountsUnderAnyName) {
  for (const char* destination :
       {"/usr", "/lib", "/alias", "/alias/..", "/missing/../usr/lib/gnu", "/usr/lib/gnu/loop"}) {
    EXPECT_EQ(covered(destination, "/usr/lib/gnu"), "/usr/lib/gnu") << destination;
  }
  for (const char* destination : {"/usr/lib/gnu/x", "/etc", "/alias/../../../etc"}) {
    EXPECT_EQ(covered(destination, "/usr/lib/gnu"), "") << destination;
  }
}

// Each of these leads to many of the next, and nowhere in the end.
TEST_F(ImagePathsTest, ManySymlinksThatLeadNowhereAreNotAllFollowed) {
  for (int i = 0; i < 8; ++i) {
    std::string target;
    for (int j = 0; j < 15; ++j) {
      target += "/n" + std::to_string(i + 1) + "/..";
    }
    fs::create_symlink(target + "/end" + std::to_string(i), root_path() + "/n" + std::to_string(i));
  }
  const ImagePaths paths(root_.get(), {{"/source", "/n0/x"}});
  EXPECT_FALSE(paths.has_too_many_lookups());
}

TEST_F(ImagePathsTest, AreLookedUpSoManyTimesOnly) {
  std::vector<container::MountEdit> mounts;
  for (int i = 0; i < 1100; ++i) {
    mounts.push_back({"/source", "/usr/lib/gnu/" + std::to_string(i)});
  }
  ImagePaths paths(root_.get(), mounts);
  EXPECT_TRUE(paths.has_too_many_lookups());
  EXPECT_EQ(paths.resolve("/usr"), "") << "nothing is looked up any more";
}

}  // namespace
}  // namespace hf::shim
