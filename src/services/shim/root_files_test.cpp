#include "services/shim/root_files.h"

#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "adapters/nvidia/loader_cache.h"
#include "kernel/files/file.h"
#include "support/fake_host.h"
#include "support/library_file.h"
#include "support/loader_cache.h"

namespace hf::shim {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using container::HookEdit;
using nvidia::HookOptions;

#if defined(__aarch64__)
constexpr const char* kLoader = "lib/ld-linux-aarch64.so.1";
#else
constexpr const char* kLoader = "lib64/ld-linux-x86-64.so.2";
#endif
constexpr const char* kDirectory = "/usr/lib/x86_64-linux-gnu";
constexpr const char* kCreates = "ModifyDeviceFiles: 1\n";

class RootFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    write_on_host("driver/libcuda.so.550", test::make_library("libcuda.so.1"));
    write_on_host("driver/libnvidia-ml.so.550", test::make_library("libnvidia-ml.so.1"));
    write_on_host("driver/nvidia.icd", "libnvidia-opencl.so.1");
    fs::create_directories(root_path());
    root_ = *kernel::open_directory(AT_FDCWD, root_path());
    for (const char* name : {"libcuda.so.550", "libnvidia-ml.so.550"}) {
      input_.mounts.push_back({"/driver/" + std::string(name), std::string(kDirectory) + "/" + name});
    }
    input_.mounts.push_back({"/driver/nvidia.icd", std::string(kDirectory) + "/nvidia.icd"});
    options_.directories = {kDirectory};
    options_.links = {{"libcuda.so.1", std::string(kDirectory) + "/libcuda.so"}};
    options_.driver_version = "550.54.15";
  }

  [[nodiscard]] std::string root_path() const { return fake_.root() + "/bundle/rootfs"; }

  static void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
  }
  void write_on_host(const std::string& path, const std::string& text) const { write(fake_.root() + "/" + path, text); }
  void write_in_image(const std::string& path, const std::string& text) const { write(root_path() + "/" + path, text); }
  [[nodiscard]] std::string read_in_image(const std::string& path) const {
    return kernel::read_text(root_.get(), path).value_or("");
  }

  void write_cache(const std::vector<std::pair<std::string, std::string>>& libraries) const {
    write_in_image(kLoader, "a loader");
    write_in_image("etc/ld.so.cache", test::make_loader_cache(libraries));
  }

  RootPlan plan() { return plan_root(host_, root_.get(), options_, input_); }

  static std::string list(const std::string& bytes) {
    std::string text;
    const nvidia::LoaderCache cache = nvidia::parse_loader_cache(bytes).value_or(nvidia::LoaderCache());
    for (const nvidia::CachedLibrary& library : cache.libraries) {
      text += std::string(library.path) + " ";
    }
    return text;
  }

  test::FakeHost fake_{{{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
                        {"proc/driver/nvidia/params", kCreates}}};
  kernel::Host host_ = fake_.open();
  kernel::Fd root_;
  HookOptions options_;
  RootInput input_;
};

TEST_F(RootFilesTest, AddsTheDriversLibrariesToTheCache) {
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
  EXPECT_EQ(fs::read_symlink(root_path() + kDirectory + "/libnvidia-ml.so.1"), "libnvidia-ml.so.550")
      << "the name in the cache exists, also where the host had no such symlink";
  EXPECT_FALSE(plan().cache) << "nothing to do a second time";
}

TEST_F(RootFilesTest, ReplacesStaleLibrariesOfTheImage) {
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

TEST_F(RootFilesTest, PrefersNewerCudaLibrariesOfTheImage) {
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
  options_.driver_version = "570.1";
  EXPECT_EQ(list(*plan().cache),
            "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so.1 "
            "/usr/lib/x86_64-linux-gnu/libcuda.so ");
}

TEST_F(RootFilesTest, WritesNoCacheWhereNoneIsNeeded) {
  EXPECT_FALSE(plan().cache) << "no loader";
  EXPECT_TRUE(plan().reasons.empty());
  write_in_image("lib/ld-musl-x86_64.so.1", "musl");
  EXPECT_TRUE(plan().reasons.empty()) << "musl";
  write_in_image(kLoader, "x\0/lib/x86_64-linux-gnu/\0/usr/lib/x86_64-linux-gnu/\0y"s);
  EXPECT_FALSE(plan().cache) << "the loader searches the directory";
  EXPECT_TRUE(plan().reasons.empty());
}

TEST_F(RootFilesTest, WritesANewCacheWhereTheLoaderWouldNotFindTheDriver) {
  write_in_image(kLoader, "/lib64/\0/usr/lib64/\0"s);
  const RootPlan planned = plan();
  EXPECT_TRUE(planned.reasons.empty());
  ASSERT_TRUE(planned.cache);
  EXPECT_EQ(list(*planned.cache),
            "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so.1 "
            "/usr/lib/x86_64-linux-gnu/libcuda.so ");
}

TEST_F(RootFilesTest, TakesIdentitiesThatAreKnown) {
  write_cache({});
  input_.identities["/driver/libcuda.so.550"] = {"libknown.so.7", test::kNativeLibrary};
  EXPECT_NE(list(*plan().cache).find("/libknown.so.7 "), std::string::npos);
}

TEST_F(RootFilesTest, LeavesItToTheHookWhereItCannotDecide) {
  const auto why = [this] {
    const RootPlan planned = plan();
    EXPECT_FALSE(planned.cache);
    EXPECT_EQ(planned.reasons.empty(), planned.rest.directories.empty());
    EXPECT_EQ(planned.rest.driver_version, planned.reasons.empty() ? "" : "550.54.15");
    EXPECT_TRUE(planned.rest.links.empty()) << "those are made before";
    return planned.reasons.empty() ? "" : planned.reasons.front();
  };
  write_in_image(kLoader, "/lib64/\0/usr/lib64/\0"s);
  write_in_image("etc/ld.so.conf", "/opt/lib\n");
  EXPECT_EQ(why(), "the image has no loader's cache but an ld.so.conf");
  write_in_image("etc/ld.so.cache", "something else");
  EXPECT_EQ(why(), "read the loader's cache: it has another format");
  write_cache({{"liba.so", "/lib/liba.so"}, {"libb.so", "/lib/libb.so"}});
  EXPECT_EQ(why(), "the entries of the image's loader's cache are out of order");
  write_cache({{"../x", "/lib/x"}});
  EXPECT_NE(why().find("impossible name"), std::string::npos);
  write_cache({});
  fs::remove(root_path() + "/" + kLoader);
  EXPECT_EQ(why(), "the image has a loader's cache, but no loader of this architecture");
}

TEST_F(RootFilesTest, FollowsNoSymlinkOutOfTheRoot) {
  fs::create_directories(fake_.root() + "/outside");
  fs::create_directory_symlink(fake_.root() + "/outside", root_path() + "/etc");
  write_in_image(kLoader, "a loader");
  write(fake_.root() + "/outside/ld.so.cache", test::make_loader_cache({}));
  EXPECT_TRUE(plan().cache) << "the symlink leads nowhere inside, so there is no cache";
  EXPECT_FALSE(carry_out(root_.get(), plan()));
  EXPECT_EQ(list(*kernel::read_text(AT_FDCWD, fake_.root() + "/outside/ld.so.cache")), "");
}

TEST_F(RootFilesTest, OpensOnlyRegularFilesOfTheImage) {
  fs::create_directories(root_path() + "/etc");
  write_in_image(kLoader, "a loader");
  ASSERT_EQ(::mkfifo((root_path() + "/etc/ld.so.cache").c_str(), 0600), 0);
  ASSERT_TRUE(carry_out(root_.get(), plan())) << "and it does not wait for a writer";
  EXPECT_TRUE(fs::is_regular_file(root_path() + "/etc/ld.so.cache"));
}

TEST_F(RootFilesTest, LimitsGraphicsToTheContainersGpus) {
  input_.nodes = {"/dev/nvidia1", "/dev/nvidiactl"};
  EXPECT_EQ(plan().graphics_profile, "");
  options_.limits_graphics = true;
  const RootPlan planned = plan();
  ASSERT_TRUE(carry_out(root_.get(), planned));
  EXPECT_NE(read_in_image("etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf").find("0x2"),
            std::string::npos);
}

class ReplaceHooksTest : public RootFilesTest {
 protected:
  void SetUp() override {
    RootFilesTest::SetUp();
    write_cache({});
    options_.keeps_device_files = true;
    spec_.root = root_path();
    delivery_.change.edits.mounts = input_.mounts;
    delivery_.change.edits.hooks = {nvidia::hook_of(options_, "/usr/bin/holdfast-runtime")};
  }

  std::vector<std::string> replace() {
    return replace_hooks(host_, {fake_.root() + "/bundle", spec_, "/usr/bin/holdfast-runtime"}, delivery_);
  }
  [[nodiscard]] const std::vector<HookEdit>& hooks() const { return delivery_.change.edits.hooks; }

  oci::Spec spec_;
  Delivery delivery_;
};

TEST_F(ReplaceHooksTest, LeavesNoHookWhereNoneIsNeeded) {
  EXPECT_EQ(replace(), std::vector<std::string>());
  EXPECT_TRUE(hooks().empty());
  EXPECT_NE(list(read_in_image("etc/ld.so.cache")), "");
}

TEST_F(ReplaceHooksTest, FindsARootBelowTheBundle) {
  spec_.root = "rootfs";
  EXPECT_TRUE(replace().empty());
  EXPECT_NE(list(read_in_image("etc/ld.so.cache")), "");
}

TEST_F(ReplaceHooksTest, KeepsTheDriverFromCreatingNodesOnlyWhereItCould) {
  spec_.may_create_nodes = true;
  EXPECT_EQ(replace().size(), 1U);
  ASSERT_EQ(hooks().size(), 1U);
  HookOptions rest;
  rest.keeps_device_files = true;
  EXPECT_EQ(nvidia::options_of(hooks()[0]), rest);
  for (const char* why : {"has every GPU", "has a user namespace", "the driver never does it"}) {
    const std::string_view reason = why;
    delivery_.has_every_gpu = reason == "has every GPU";
    spec_.has_user_namespace = reason == "has a user namespace";
    write_on_host("proc/driver/nvidia/params",
                  reason == "the driver never does it" ? "ModifyDeviceFiles: 0\n" : kCreates);
    delivery_.change.edits.hooks = {nvidia::hook_of(options_, "/usr/bin/holdfast-runtime")};
    EXPECT_EQ(replace().empty(), !spec_.has_user_namespace) << why;
    EXPECT_EQ(hooks().empty(), !spec_.has_user_namespace) << why;
  }
}

TEST_F(ReplaceHooksTest, KeepsTheWholeHookInAUserNamespaceAndWithoutARoot) {
  spec_.has_user_namespace = true;
  EXPECT_EQ(replace(), std::vector<std::string>{"the container has a user namespace"});
  ASSERT_EQ(hooks().size(), 1U);
  EXPECT_EQ(nvidia::options_of(hooks()[0]), options_);
  spec_.has_user_namespace = false;
  for (const char* root : {"", "nowhere"}) {
    spec_.root = root;
    EXPECT_EQ(replace().size(), 1U) << root;
    ASSERT_EQ(hooks().size(), 1U);
    EXPECT_EQ(nvidia::options_of(hooks()[0]), options_);
  }
}

TEST_F(ReplaceHooksTest, WritesNothingWhereTheRootIsASymlink) {
  fs::create_directory_symlink(root_path(), fake_.root() + "/bundle/link");
  const std::string before = read_in_image("etc/ld.so.cache");
  for (const char* root : {"link", "link/"}) {
    spec_.root = root;
    delivery_.change.edits.hooks = {nvidia::hook_of(options_, "/usr/bin/holdfast-runtime")};
    EXPECT_EQ(replace().size(), 1U) << root;
    EXPECT_EQ(hooks().size(), 1U);
    EXPECT_EQ(read_in_image("etc/ld.so.cache"), before);
  }
}

TEST_F(ReplaceHooksTest, KeepsHooksOfOthers) {
  const HookEdit other{.path = "/usr/bin/other", .arguments = {"other"}};
  delivery_.change.edits.hooks.push_back(other);
  EXPECT_TRUE(replace().empty());
  EXPECT_EQ(hooks(), std::vector{other});
}

TEST_F(ReplaceHooksTest, ReplacesOurHookThatAnEngineTookFromACdiSpec) {
  const HookEdit ours = delivery_.change.edits.hooks[0];
  delivery_.change.edits.hooks.clear();
  spec_.hooks = {{"createContainer", ours.path, ours.arguments}, {"createContainer", "/usr/bin/other", {"other"}}};
  EXPECT_TRUE(replace().empty());
  EXPECT_EQ(delivery_.change.dropped_hooks, std::vector<std::string>{ours.path});
  EXPECT_NE(list(read_in_image("etc/ld.so.cache")), "");
  delivery_ = Delivery();
  spec_.hooks.push_back({"createContainer", ours.path, {"holdfast-runtime", "hook", "create-container", "--later"}});
  EXPECT_TRUE(replace().empty());
  EXPECT_TRUE(delivery_.change.dropped_hooks.empty()) << "one of them is not understood";
}

}  // namespace
}  // namespace hf::shim
