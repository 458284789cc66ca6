#include "services/shim/root_files.h"

#include <sys/stat.h>

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
