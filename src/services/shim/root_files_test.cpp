#include "services/shim/root_files.h"

#include <chrono>

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "kernel/files/lock.h"
#include "services/shim/root_files_test.h"

namespace hf::shim {
namespace {

namespace fs = std::filesystem;
using container::HookEdit;
using nvidia::HookOptions;

TEST_F(RootFilesTest, FollowsNoSymlinkOutOfTheRoot) {
  fs::create_directories(fake_.root() + "/outside");
  fs::create_directory_symlink(fake_.root() + "/outside", root_path() + "/etc");
  write_in_image(kLoader, "a loader");
  write(fake_.root() + "/outside/ld.so.cache", test::make_loader_cache({}));
  EXPECT_TRUE(plan().cache) << "the symlink leads nowhere inside, so there is no cache";
  EXPECT_FALSE(carry_out(root_.get(), plan()));
  EXPECT_EQ(list(*kernel::read_text(AT_FDCWD, fake_.root() + "/outside/ld.so.cache")), "");
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

  Result<ReplacedHooks> replace_all() {
    return replace_hooks(host_, {fake_.root() + "/bundle", spec_, "/usr/bin/holdfast-runtime"}, delivery_);
  }
  // Why a hook is left.
  std::vector<std::string> replace() {
    const Result<ReplacedHooks> done = replace_all();
    EXPECT_TRUE(done);
    return done ? done->reasons : std::vector<std::string>();
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

TEST_F(ReplaceHooksTest, LeavesTheHostsOwnRootAlone) {
  write_on_host("etc/ld.so.cache", test::make_loader_cache({}));
  write_on_host(kLoader, "a loader");
  for (const std::string& root : {fake_.root(), fake_.root() + "/.", fake_.root() + "//"}) {
    spec_.root = root;
    spec_.may_create_nodes = root == fake_.root();
    delivery_.change.edits.hooks = {nvidia::hook_of(options_, "/usr/bin/holdfast-runtime")};
    const Result<ReplacedHooks> done = replace_all();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->notes, std::vector<std::string>{"its root file system is the host's own, and stays as it is"});
    EXPECT_EQ(*kernel::read_text(AT_FDCWD, fake_.root() + "/etc/ld.so.cache"), test::make_loader_cache({}));
    EXPECT_FALSE(fs::exists(fake_.root() + kDirectory));
    EXPECT_EQ(hooks().size(), spec_.may_create_nodes ? 1U : 0U) << "which covers the driver's parameters only";
  }
}

TEST_F(ReplaceHooksTest, WaitsForAnotherStartInTheSameRootButNotForEver) {
  const kernel::Fd other = *kernel::open_directory(AT_FDCWD, root_path());
  ASSERT_TRUE(kernel::lock_within(other, std::chrono::milliseconds(0)));
  EXPECT_FALSE(kernel::lock_within(*kernel::open_directory(AT_FDCWD, root_path()), std::chrono::milliseconds(5)));
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(replace().empty());
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(100));
  EXPECT_NE(list(read_in_image("etc/ld.so.cache")), "");
}

// In a mount namespace of its own, where the container's root file system is read-only.
class ReadOnlyRootTest : public ReplaceHooksTest {
 protected:
  void SetUp() override {
    ReplaceHooksTest::SetUp();
    if (::unshare(CLONE_NEWNS) < 0) {
      GTEST_SKIP() << "needs root for a mount";
    }
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  }
  void TearDown() override {
    ::umount2(root_path().c_str(), MNT_DETACH);
    ASSERT_EQ(::setns(ours_.get(), CLONE_NEWNS), 0);
  }
  void make_mount_points() const {
    for (const container::MountEdit& mount : input_.mounts) {
      write_in_image(mount.destination, "");
    }
  }
  void make_read_only() const {
    const std::string root = root_path();
    ASSERT_EQ(::mount(root.c_str(), root.c_str(), nullptr, MS_BIND, nullptr), 0);
    ASSERT_EQ(::mount(nullptr, root.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr), 0);
  }
  [[nodiscard]] std::string cache_in_bundle() const {
    return kernel::read_text(AT_FDCWD, fake_.root() + "/bundle/" + kCacheInBundle).value_or("");
  }

  kernel::Fd ours_{::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC)};
};

TEST_F(ReadOnlyRootTest, HasTheCacheMountedAndItsNamesLeadToTheFiles) {
  make_mount_points();
  make_read_only();
  const std::size_t mounts = delivery_.change.edits.mounts.size();
  for (int start = 0; start < 2; ++start) {
    delivery_.change.edits.hooks = {nvidia::hook_of(options_, "/usr/bin/holdfast-runtime")};
    const Result<ReplacedHooks> done = replace_all();
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(done->reasons.empty());
    EXPECT_TRUE(hooks().empty()) << "it could not write either";
    EXPECT_EQ(done->notes.size(), 1U);
    ASSERT_EQ(delivery_.change.edits.mounts.size(), mounts + 1);
    EXPECT_EQ(delivery_.change.edits.mounts.back().source, fake_.root() + "/bundle/" + kCacheInBundle);
    EXPECT_EQ(delivery_.change.edits.mounts.back().destination, "/etc/ld.so.cache");
    EXPECT_EQ(list(cache_in_bundle()),
              "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.15 /usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15 "
              "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15 ");
    spec_.mounts = {{"/etc/ld.so.cache", fake_.root() + "/bundle/" + kCacheInBundle}};  // the same spec again
    delivery_.change.edits.mounts.pop_back();
  }
}

TEST_F(ReadOnlyRootTest, StaysAsItIsWhereItWasPreparedBefore) {
  options_.limits_graphics = true;
  delivery_.change.edits.nodes = {{.path = "/dev/nvidia0", .device = std::nullopt}};
  delivery_.change.edits.hooks = {nvidia::hook_of(options_, "/usr/bin/holdfast-runtime")};
  EXPECT_TRUE(replace().empty());
  make_mount_points();
  make_read_only();
  delivery_.change.edits.hooks = {nvidia::hook_of(options_, "/usr/bin/holdfast-runtime")};
  const Result<ReplacedHooks> done = replace_all();
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->notes.empty()) << done->notes.front();
  EXPECT_TRUE(hooks().empty());
  EXPECT_EQ(cache_in_bundle(), "");
}

TEST_F(ReadOnlyRootTest, IsNotReadOnOtherMounts) {
  options_.limits_graphics = true;
  delivery_.change.edits.nodes = {{.path = "/dev/nvidia0", .device = std::nullopt}};
  delivery_.change.edits.hooks = {nvidia::hook_of(options_, "/usr/bin/holdfast-runtime")};
  EXPECT_TRUE(replace().empty());
  const std::string volume = root_path() + "/etc/nvidia";
  ASSERT_EQ(::mount(volume.c_str(), volume.c_str(), nullptr, MS_BIND, nullptr), 0);
  delivery_.change.edits.hooks = {nvidia::hook_of(options_, "/usr/bin/holdfast-runtime")};
  EXPECT_EQ(replace().size(), 1U) << "the hook passes over the profile";
  EXPECT_EQ(hooks().size(), 1U);
}

TEST_F(ReadOnlyRootTest, HasANoteWhereGraphicsIsNotLimited) {
  options_.limits_graphics = true;
  delivery_.change.edits.nodes = {{.path = "/dev/nvidia0", .device = std::nullopt}};
  delivery_.change.edits.hooks = {nvidia::hook_of(options_, "/usr/bin/holdfast-runtime")};
  make_mount_points();
  make_read_only();
  const Result<ReplacedHooks> done = replace_all();
  ASSERT_TRUE(done);
  ASSERT_EQ(done->notes.size(), 2U);
  EXPECT_EQ(done->notes[1], "its root file system is read-only: graphics is not limited to its GPUs");
}

TEST_F(ReadOnlyRootTest, IsRefusedWhereNothingCanBeMounted) {
  make_read_only();
  const Result<ReplacedHooks> done = replace_all();
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("has no " + input_.mounts.front().destination), std::string::npos);
  spec_.mounts = {{"/usr/lib/", "tmpfs"}};
  EXPECT_TRUE(replace_all()) << "the runtime can create files in another mount";
}

TEST_F(ReadOnlyRootTest, IsNotRefusedWhereTooManyPathsWouldHaveToBeLookedUp) {
  fs::create_directories(root_path() + "/usr/real");
  fs::create_directory_symlink("real", root_path() + "/usr/lib");
  make_mount_points();
  make_read_only();
  for (int i = 0; i < 600; ++i) {
    spec_.mounts.push_back({"/missing" + std::to_string(i) + "/file", "/home"});
  }
  const Result<ReplacedHooks> done = replace_all();
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_TRUE(hooks().empty()) << "it could not write either";
}

TEST_F(ReadOnlyRootTest, KeepsNoHookThatCouldNotWrite) {
  write_in_image("etc/ld.so.cache", "something else");
  make_mount_points();
  make_read_only();
  const Result<ReplacedHooks> done = replace_all();
  ASSERT_TRUE(done);
  EXPECT_TRUE(hooks().empty());
  EXPECT_EQ(done->notes.size(), 2U);
  EXPECT_EQ(cache_in_bundle(), "");
}

TEST_F(ReplaceHooksTest, KeepsHooksOfOthers) {
  const HookEdit other{.path = "/usr/bin/other", .arguments = {"other"}};
  delivery_.change.edits.hooks.push_back(other);
  EXPECT_TRUE(replace().empty());
  EXPECT_EQ(hooks(), std::vector{other});
}

TEST_F(ReplaceHooksTest, TakesTheSameHookOnceWhereAnEngineTookItFromACdiSpecToo) {
  const HookEdit ours = delivery_.change.edits.hooks[0];
  spec_.hooks = {{"createContainer", ours.path, ours.arguments}, {"createContainer", ours.path, ours.arguments}};
  spec_.has_user_namespace = true;
  EXPECT_EQ(replace().size(), 1U);
  EXPECT_EQ(hooks(), std::vector{ours});
  EXPECT_EQ(delivery_.change.dropped_hooks, std::vector<std::string>{ours.path});
}

TEST_F(ReplaceHooksTest, KeepsAHookOfTheSpecWithItsEnvironmentAndDeadline) {
  HookEdit ours = delivery_.change.edits.hooks[0];
  ours.environment = {"PATH=/bin"};
  ours.timeout = 30;
  delivery_.change.edits.hooks.clear();
  spec_.hooks = {{"createContainer", ours.path, ours.arguments, ours.environment, ours.timeout}};
  spec_.has_user_namespace = true;
  EXPECT_EQ(replace().size(), 1U);
  EXPECT_EQ(hooks(), std::vector{ours});
}

TEST_F(ReplaceHooksTest, KeepsEnvironmentAndDeadlineOfAHookThatIsReplacedInPart) {
  delivery_.change.edits.hooks[0].environment = {"PATH=/bin"};
  delivery_.change.edits.hooks[0].timeout = 30;
  HookEdit rest = delivery_.change.edits.hooks[0];
  rest.arguments = {"holdfast-runtime", "hook", "create-container", "--keep-device-files"};
  spec_.may_create_nodes = true;
  EXPECT_EQ(replace().size(), 1U);
  EXPECT_EQ(hooks(), std::vector{rest});
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
