#include "services/setup/host_setup.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "kernel/files/file.h"
#include "render/setup.h"
#include "services/setup/host_plan.h"
#include "support/fake_host.h"

namespace hf::setup {
namespace {

using device::Device;
using device::Kind;
using device::Node;

Node node_of(const std::string& path, std::optional<Device> live, std::optional<Device> expected) {
  Node node;
  node.path = path;
  node.device_class = "nvidia";
  node.live = live;
  node.expected = expected;
  node.mode = 0640;
  return node;
}

Device character(std::uint32_t major, std::uint32_t minor) { return {Kind::character, major, minor}; }

std::vector<std::string> steps_of(const HostDeviceFacts& facts) {
  std::vector<std::string> steps;
  for (const HostStep& step : plan_nodes(facts)) {
    steps.push_back(to_string(step));
  }
  return steps;
}

TEST(NodePlan, CreatesMissingNodesAndRecreatesStaleOnes) {
  HostDeviceFacts facts;
  facts.inventory.nodes = {node_of("/dev/nvidia-uvm", character(509, 0), character(510, 0)),
                           node_of("/dev/nvidia0", {}, character(195, 0)),
                           node_of("/dev/nvidiactl", character(195, 255), character(195, 255))};
  facts.links = {
      {"/dev/char/509:0", "../nvidia-uvm"}, {"/dev/char/195:255", "../nvidiactl"}, {"/dev/char/1:3", "../null"}};
  EXPECT_EQ(steps_of(facts), (std::vector<std::string>{
                                 "recreate /dev/nvidia-uvm as c 510:0: it has c 509:0",
                                 "create /dev/nvidia0 as c 195:0",
                                 "link /dev/char/510:0 to ../nvidia-uvm",
                                 "link /dev/char/195:0 to ../nvidia0",
                                 "remove the link /dev/char/509:0: /dev/nvidia-uvm has c 510:0 now",
                             }));
}

TEST(NodePlan, IsEmptyIfNodesAndLinksAreRight) {
  HostDeviceFacts facts;
  facts.inventory.nodes = {node_of("/dev/nvidia-caps/nvidia-cap1", character(234, 1), character(234, 1)),
                           node_of("/dev/nvidia0", character(195, 0), {}), node_of("/dev/x", {}, {})};
  facts.links = {{"/dev/char/234:1", "../nvidia-caps/nvidia-cap1"}, {"/dev/char/195:0", "/dev/nvidia0"}};
  EXPECT_EQ(steps_of(facts), std::vector<std::string>());
}

TEST(NodePlan, CorrectsALinkWithAnotherTarget) {
  HostDeviceFacts facts;
  facts.inventory.nodes = {node_of("/dev/nvidia0", character(195, 0), character(195, 0)),
                           node_of("/dev/nvidia1", character(195, 1), character(195, 1))};
  facts.links = {{"/dev/char/195:0", "../nvidia1"}, {"/dev/char/195:1", ""}};
  EXPECT_EQ(steps_of(facts), (std::vector<std::string>{
                                 "link /dev/char/195:0 to ../nvidia0: it leads to ../nvidia1",
                                 "link /dev/char/195:1 to ../nvidia1: something else is in its place",
                             }));
}

TEST(NodePlan, GivesNodesTheModeTheDriverAsksFor) {
  HostDeviceFacts facts;
  facts.inventory.nodes = {node_of("/dev/nvidia0", {}, character(195, 0))};
  EXPECT_EQ(plan_nodes(facts).front().permissions.mode, 0666U);
  facts.params = {{"DeviceFileMode", "432"}, {"DeviceFileGID", "44"}};
  EXPECT_EQ(plan_nodes(facts).front().permissions.mode, 0660U);
  EXPECT_EQ(plan_nodes(facts).front().permissions.gid, 44U);
  facts.inventory.nodes.front().device_class = "kvm";
  EXPECT_EQ(plan_nodes(facts).front().permissions.mode, 0600U) << "udev decides the mode of other classes";
}

class HostSetupTest : public testing::Test {
 protected:
  HostSetupTest()
      : fake_({{"proc/devices", "Character devices:\n195 nvidia\n510 nvidia-uvm\n\nBlock devices:\n"},
               {"proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue\n"},
               {"proc/driver/nvidia/params", "ModifyDeviceFiles: 1\nDeviceFileMode: 438\nDeviceFileUID: 0\n"},
               {"proc/driver/nvidia/gpus/0000:65:00.0/information", "Model: \t NVIDIA X\nDevice Minor: \t 0\n"},
               {"sys/module/nvidia/", ""},
               {"etc/udev/", ""},
               {"dev/", ""}}) {
    host_.root = *kernel::open_directory(AT_FDCWD, fake_.root());
  }

  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "only root can create nodes";
    }
    if (::mknod((fake_.root() + "/dev/probe").c_str(), S_IFCHR | 0600, makedev(195, 0)) != 0) {
      GTEST_SKIP() << "no nodes can be created here";
    }
  }

  [[nodiscard]] struct stat status_of(const std::string& path) const {
    struct stat status{};
    EXPECT_EQ(::lstat((fake_.root() + path).c_str(), &status), 0) << path;
    return status;
  }

  test::FakeHost fake_;
  kernel::Host host_;
};

TEST_F(HostSetupTest, GivesTheDevicesTheirNodesLinksAndRule) {
  ASSERT_EQ(::mknod((fake_.root() + "/dev/nvidia-uvm").c_str(), S_IFCHR | 0640, makedev(509, 0)), 0);
  HostSetupOptions options;
  options.program = "/usr/bin/holdfast";
  options.mode = RunMode::dry_run;
  const Result<report::SetupReport> planned = set_up_host(host_, options);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_EQ(planned->steps.size(), 9U) << render_text(*planned);
  EXPECT_FALSE(std::filesystem::exists(fake_.root() + "/dev/nvidia0"));

  options.mode = RunMode::carry_out;
  const Result<report::SetupReport> done = set_up_host(host_, options);
  EXPECT_EQ(done->steps, planned->steps);
  EXPECT_EQ(done->failed, std::vector<std::string>());
  EXPECT_EQ(status_of("/dev/nvidia0").st_rdev, makedev(195, 0));
  EXPECT_EQ(status_of("/dev/nvidia0").st_mode, mode_t(S_IFCHR | 0666));
  EXPECT_EQ(status_of("/dev/nvidia-uvm").st_rdev, makedev(510, 0));
  EXPECT_EQ(std::filesystem::read_symlink(fake_.root() + "/dev/char/510:0"), "../nvidia-uvm");
  EXPECT_TRUE(std::filesystem::exists(fake_.root() + kUdevRule));
  EXPECT_TRUE(set_up_host(host_, options)->changes_nothing());

  EXPECT_FALSE(undo_host(host_, options)->changes_nothing());
  EXPECT_FALSE(std::filesystem::exists(fake_.root() + kUdevRule));
  EXPECT_TRUE(undo_host(host_, options)->changes_nothing());
}

TEST_F(HostSetupTest, ReportsAFailedStepAndDoesTheOthers) {
  std::filesystem::create_directories(fake_.root() + "/dev/nvidia0/in-the-way");
  HostSetupOptions options;
  options.program = "/usr/bin/holdfast";
  const Result<report::SetupReport> done = set_up_host(host_, options);
  ASSERT_TRUE(done);
  ASSERT_EQ(done->failed.size(), 1U) << render_text(*done);
  EXPECT_TRUE(done->failed.front().starts_with("create /dev/nvidia0 as c 195:0: ")) << done->failed.front();
  EXPECT_EQ(status_of("/dev/nvidiactl").st_rdev, makedev(195, 255));
}

TEST_F(HostSetupTest, LoadsOnlyAvailableModulesThatAreNotLoaded) {
  const std::string modprobe = fake_.root() + "/modprobe";
  std::ofstream(modprobe) << "#!/bin/sh\necho \"$@\" >> " + fake_.root() + "/called\n";
  ::chmod(modprobe.c_str(), 0755);
  HostSetupOptions options;
  options.program = "/usr/bin/holdfast";
  options.modprobe = modprobe;
  options.modules = Modules::load;
  const Result<report::SetupReport> done = set_up_host(host_, options);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->steps.front(), "load the module nvidia-uvm");
  EXPECT_EQ(*kernel::read_text(host_.root.get(), "called"), "--dry-run --quiet nvidia-uvm\nnvidia-uvm\n");
}

TEST_F(HostSetupTest, KeepsTheDriverFromCreatingNodesOnRequest) {
  HostSetupOptions options;
  options.program = "/usr/bin/holdfast";
  ASSERT_TRUE(set_up_host(host_, options));
  EXPECT_FALSE(std::filesystem::exists(fake_.root() + kModuleOptions));
  options.device_files = DeviceFiles::by_setup;
  const Result<report::SetupReport> done = set_up_host(host_, options);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->steps, std::vector<std::string>{std::string("create ") + kModuleOptions});
  const std::string text = *kernel::read_text(host_.root.get(), kernel::below_root(kModuleOptions));
  EXPECT_TRUE(text.ends_with("\noptions nvidia NVreg_ModifyDeviceFiles=0\n")) << text;
  EXPECT_TRUE(set_up_host(host_, options)->changes_nothing());
  EXPECT_EQ(undo_host(host_, options)->steps.size(), 2U);
  EXPECT_FALSE(std::filesystem::exists(fake_.root() + kModuleOptions));
}

TEST_F(HostSetupTest, OffersToEndHooksWhereThereAreSeveralGpusOrPartsOfOne) {
  HostSetupOptions options;
  options.program = "/usr/bin/holdfast";
  const auto is_offered = [&] {
    const Result<report::SetupReport> done = set_up_host(host_, options);
    EXPECT_TRUE(done);
    return done && std::ranges::any_of(done->notes, [](const std::string& note) {
             return note.find("--keep-device-files") != std::string::npos;
           });
  };
  const std::string parts = fake_.root() + "/proc/driver/nvidia/capabilities/gpu0/mig";
  std::filesystem::create_directories(parts);
  EXPECT_FALSE(is_offered()) << "every container has the only GPU as a whole";
  std::filesystem::create_directories(parts + "/gi1/ci0");
  EXPECT_TRUE(is_offered()) << "a container may have one of its parts";
  std::filesystem::remove_all(parts);
  const std::string gpu = fake_.root() + "/proc/driver/nvidia/gpus/0000:66:00.0";
  std::filesystem::create_directories(gpu);
  std::ofstream(gpu + "/information") << "Model: \t NVIDIA X\nDevice Minor: \t 1\n";
  EXPECT_TRUE(is_offered());
  options.device_files = DeviceFiles::by_setup;
  EXPECT_FALSE(is_offered()) << "it was asked for";
  options.device_files = DeviceFiles::by_driver;
  EXPECT_FALSE(is_offered()) << "it waits for the next load of the driver";
  ASSERT_TRUE(undo_host(host_, options));
  std::ofstream(fake_.root() + "/proc/driver/nvidia/params") << "ModifyDeviceFiles: 0\n";
  EXPECT_FALSE(is_offered()) << "the driver creates none";
}

TEST_F(HostSetupTest, LeavesARuleThatIsNotOurs) {
  std::filesystem::create_directories(fake_.root() + "/etc/udev/rules.d");
  std::ofstream(fake_.root() + kUdevRule) << "# mine\n";
  EXPECT_TRUE(undo_host(host_, {"/usr/bin/holdfast"})->changes_nothing());
  EXPECT_EQ(*kernel::read_text(host_.root.get(), kernel::below_root(kUdevRule)), "# mine\n");
}

}  // namespace
}  // namespace hf::setup
