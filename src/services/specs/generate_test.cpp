#include "services/specs/generate.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "adapters/cdi/spec.h"
#include "adapters/nvidia/driver.h"
#include "adapters/nvidia/library.h"
#include "core/base/text.h"
#include "host/inventory.h"
#include "support/fake_host.h"

namespace hf::specs {
namespace {

using container::ContainerEdits;
using device::Device;
using device::Inventory;
using device::Kind;
using test::FakeHost;
using test::Files;

constexpr const char* kFirst = "GPU-11111111-0000-0000-0000-000000000001";
constexpr const char* kSecond = "GPU-22222222-0000-0000-0000-000000000002";

std::string information(const std::string& uuid, const std::string& minor) {
  return "Model: NVIDIA H200\nGPU UUID: " + uuid + "\nDevice Minor: " + minor + "\nGPU Excluded: No\n";
}

// Two GPUs; the second has MIG enabled.
Files host_files() {
  return {{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
          {"proc/devices", "Character devices:\n195 nvidia\n238 nvidia-uvm\n241 nvidia-caps\n"},
          {"proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module  580.159.04\n"},
          {"proc/driver/nvidia/gpus/0000:65:00.0/information", information(kFirst, "0")},
          {"proc/driver/nvidia/gpus/0000:66:00.0/information", information(kSecond, "1")},
          {"proc/driver/nvidia-caps/mig-minors",
           "gpu1/gi1/access 12\ngpu1/gi1/ci0/access 13\n"
           "gpu1/gi2/access 21\ngpu1/gi2/ci0/access 22\n"},
          {"sys/bus/pci/devices/0000:65:00.0/drm/card1/", ""},
          {"sys/bus/pci/devices/0000:65:00.0/drm/renderD128/", ""},
          {"usr/lib64/libcuda.so.580.159.04",
           "\x7f"
           "ELF\x02"},
          {"usr/bin/nvidia-smi",
           "\x7f"
           "ELF\x02"},
          {"usr/bin/holdfast-runtime", ""},
          {"dev/dri/by-path/", ""}};
}

void mark_live(Inventory& inventory) {
  for (device::Node& node : inventory.nodes) {
    node.live = node.live ? node.live : node.expected;
    node.mode = node.mode == 0 ? 0666 : node.mode;
  }
}

// The inventory of the tree. Its nodes are marked as live, because only root can create real ones.
Inventory inventory_of(const FakeHost& host) {
  config::Config config;
  config.classes = device::built_in_classes();
  Inventory inventory = host::take_inventory(host.open(), config, host::Libraries::leave);
  nvidia::LibraryAnswer answer;
  answer.has_nvml = true;
  answer.gpus.resize(2);
  answer.gpus[0].pci = "0000:65:00.0";
  answer.gpus[0].uuid = kFirst;
  answer.gpus[1].pci = "0000:66:00.0";
  answer.gpus[1].uuid = kSecond;
  answer.gpus[1].mig_enabled = true;
  answer.gpus[1].mig = {{"MIG-a", 1, 0}, {"MIG-b", 2, 0}};
  nvidia::add_to(inventory, answer);
  nvidia::add_mig_nodes(inventory, host.open());
  for (const char* name : {"card1", "renderD128"}) {
    const std::string path = std::string("/dev/dri/") + name;
    std::erase_if(inventory.nodes, [&path](const device::Node& node) { return node.path == path; });
    device::Node node;
    node.path = path;
    node.device_class = "nvidia";
    node.live = Device{Kind::character, 226, name[0] == 'c' ? 1U : 128U};
    node.mode = 0660;
    node.gid = 44;
    inventory.nodes.push_back(node);
  }
  mark_live(inventory);
  return inventory;
}

std::vector<std::string> names_of(const cdi::NewSpec& spec) {
  std::vector<std::string> names;
  for (const auto& [name, edits] : spec.devices) {
    names.push_back(name);
  }
  return names;
}

std::vector<std::string> paths_of(const cdi::NewSpec& spec, const std::string& device) {
  std::vector<std::string> paths;
  for (const auto& [name, edits] : spec.devices) {
    for (const container::NodeEdit& node : name == device ? edits.nodes : std::vector<container::NodeEdit>()) {
      paths.push_back(node.path);
    }
  }
  return paths;
}

// NVML, a fake here, is asked as the command does it.
class GenerateWithNvml : public testing::Test {
 protected:
  ~GenerateWithNvml() override {
    ::unsetenv("HOLDFAST_FAKE_MIG");
    ::unsetenv("HOLDFAST_FAKE_MIG_EMPTY");
  }

  static Files files(const std::string& capabilities) {
    Files all = host_files();
    all.erase("proc/driver/nvidia/gpus/0000:65:00.0/information");
    all.erase("proc/driver/nvidia/gpus/0000:66:00.0/information");
    all["proc/driver/nvidia/gpus/0000:ca:00.0/information"] = information(kFirst, "0");
    all["proc/driver/nvidia/capabilities/" + capabilities] = "";
    return all;
  }

  static Result<Generated> generate_on(const FakeHost& host) {
    config::Config config;
    config.classes = device::built_in_classes();
    Inventory inventory = host::take_inventory(host.open(), config, host::Libraries::ask_for_mig);
    was_asked_ = std::ranges::any_of(inventory.notes, [](const std::string& note) { return note.contains("asked"); });
    mark_live(inventory);
    return generate(host.open(), inventory, {});
  }

  inline static bool was_asked_ = false;
};

TEST_F(GenerateWithNvml, OffersNoGpuAsAWholeWhereMigIsEnabledAndHasNoParts) {
  ::setenv("HOLDFAST_FAKE_MIG", "0", 1);
  ::setenv("HOLDFAST_FAKE_MIG_EMPTY", "1", 1);
  const FakeHost host(files("gpu0/mig/"));
  const Result<Generated> generated = generate_on(host);
  EXPECT_TRUE(was_asked_);
  const std::string said = generated ? join(generated->notes, " ") : generated.error().message;
  EXPECT_NE(said.find("MIG is enabled, and no part of it is made"), std::string::npos) << said;
  EXPECT_FALSE(generated && !paths_of(generated->spec, "0").empty());
}

TEST_F(GenerateWithNvml, OffersItWhereMigIsDisabled) {
  const FakeHost host(files("gpu0/mig/"));
  const Result<Generated> generated = generate_on(host);
  ASSERT_TRUE(generated) << generated.error().message;
  EXPECT_TRUE(was_asked_);
  EXPECT_FALSE(paths_of(generated->spec, "0").empty());
}

TEST_F(GenerateWithNvml, DoesNotAskWhereNoGpuCanHaveParts) {
  const FakeHost host(files("mig/"));
  ASSERT_TRUE(generate_on(host));
  EXPECT_FALSE(was_asked_);
}

TEST(Generate, NamesGpusAndTheirMigDevices) {
  const FakeHost host(host_files());
  std::filesystem::create_symlink("../card1", host.root() + "/dev/dri/by-path/pci-0000:65:00.0-card");
  const Result<Generated> generated = generate(host.open(), inventory_of(host), {});
  ASSERT_TRUE(generated) << generated.error().message;
  const cdi::NewSpec& spec = generated->spec;
  EXPECT_TRUE(generated->notes.empty()) << generated->notes[0];
  EXPECT_EQ(spec.kind, "nvidia.com/gpu");
  EXPECT_EQ(names_of(spec), (std::vector<std::string>{"0", kFirst, "1:0", "MIG-a", "1:1", "MIG-b", "all"}));
  EXPECT_EQ(paths_of(spec, "0"), (std::vector<std::string>{"/dev/nvidia0", "/dev/dri/card1", "/dev/dri/renderD128"}));
  EXPECT_EQ(paths_of(spec, "MIG-b"), (std::vector<std::string>{"/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap21",
                                                               "/dev/nvidia-caps/nvidia-cap22"}));
  EXPECT_EQ(paths_of(spec, "all").size(), 8U);
  const ContainerEdits& first = spec.devices[0].second;
  EXPECT_EQ(first.nodes[0].device, (Device{Kind::character, 195, 0}));
  EXPECT_EQ(first.nodes[0].mode, 0666U);
  EXPECT_EQ(first.nodes[0].gid, std::nullopt);
  EXPECT_EQ(first.nodes[1].gid, 44U);
  ASSERT_EQ(first.hooks.size(), 1U);
  EXPECT_EQ(first.hooks[0].arguments.back(), "../card1::/dev/dri/by-path/pci-0000:65:00.0-card");
}

TEST(Generate, GivesEveryDeviceTheDriverAndItsControls) {
  const FakeHost host(host_files());
  const Result<Generated> generated = generate(host.open(), inventory_of(host), {});
  ASSERT_TRUE(generated) << generated.error().message;
  const ContainerEdits& all = generated->spec.all;
  ASSERT_EQ(all.nodes.size(), 3U);
  EXPECT_EQ(all.nodes[0].path, "/dev/nvidiactl");
  EXPECT_EQ(all.nodes[1].device, (Device{Kind::character, 238, 0}));
  EXPECT_EQ(all.nodes[2].path, "/dev/nvidia-uvm-tools");
  EXPECT_EQ(all.mounts.size(), 2U);
  EXPECT_EQ(all.hooks.size(), 1U);
  EXPECT_EQ(all.environment,
            (std::vector<std::string>{"NVIDIA_VISIBLE_DEVICES=void", "NVIDIA_CTK_LIBCUDA_DIR=/usr/lib64"}));
}

TEST(Generate, SurvivesRenderingAndParsing) {
  const FakeHost host(host_files());
  const cdi::NewSpec spec = generate(host.open(), inventory_of(host), {})->spec;
  for (const std::string& text : {render_yaml(spec), render_json(spec)}) {
    const Result<cdi::Spec> read = cdi::parse_spec(text, "f");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_TRUE(cdi::faults_of(*read).empty()) << cdi::faults_of(*read)[0];
    EXPECT_EQ(read->version, "0.5.0") << "older engines must be able to read it";
    EXPECT_EQ(read->all, spec.all);
    ASSERT_EQ(read->devices.size(), spec.devices.size());
    for (const auto& [name, edits] : spec.devices) {
      EXPECT_EQ(read->devices.at(name), edits) << name;
    }
  }
}

TEST(Generate, FollowsTheSettings) {
  const FakeHost host(host_files());
  Settings settings;
  settings.names = Names::index;
  settings.has_all = false;
  settings.vendor = "example.org";
  settings.hook.path = "/opt/hook";
  const Result<Generated> generated = generate(host.open(), inventory_of(host), settings);
  ASSERT_TRUE(generated) << generated.error().message;
  EXPECT_EQ(generated->spec.kind, "example.org/gpu");
  EXPECT_EQ(names_of(generated->spec), (std::vector<std::string>{"0", "1:0", "1:1"}));
  EXPECT_EQ(generated->notes.size(), 1U) << "the hook is not there";
  settings.names = Names::uuid;
  EXPECT_EQ(names_of(generate(host.open(), inventory_of(host), settings)->spec),
            (std::vector<std::string>{kFirst, "MIG-a", "MIG-b"}));
}

TEST(Generate, FailsIfARequiredNodeIsMissing) {
  const FakeHost host(host_files());
  const auto error_without = [&host](const std::string& path, const char* driver) {
    Inventory inventory = inventory_of(host);
    inventory.drivers.character.erase(driver);
    for (device::Node& node : inventory.nodes) {
      node.live = node.path == path ? std::nullopt : node.live;
    }
    const Result<Generated> generated = generate(host.open(), inventory, {});
    return generated ? std::string() : generated.error().message;
  };
  EXPECT_TRUE(error_without("/dev/nvidia-uvm", "nvidia-uvm").ends_with("load it: modprobe nvidia-uvm"));
  EXPECT_TRUE(error_without("/dev/nvidia-uvm", "").ends_with("make it: nvidia-modprobe -u -c 0"));
  EXPECT_TRUE(error_without("/dev/nvidiactl", "").ends_with("make it: nvidia-modprobe -c 0"));
  EXPECT_TRUE(error_without("/dev/nvidia1", "").ends_with("make it: nvidia-modprobe -c 1"));
  EXPECT_EQ(error_without("/dev/nvidia-uvm-tools", ""), "");
}

TEST(Generate, RefusesAGpuWithUnknownMigDevices) {
  Files files = host_files();
  files["proc/driver/nvidia/capabilities/gpu0/mig/gi1/access"] = "DeviceFileMinor: 3\n";
  const FakeHost host(files);
  const Result<Generated> generated = generate(host.open(), inventory_of(host), {});
  ASSERT_FALSE(generated);
  EXPECT_NE(generated.error().message.find("GPU 0 is cut into parts"), std::string::npos) << generated.error().message;
}

TEST(Generate, ReportsWhatItLeavesOut) {
  const FakeHost host(host_files());
  Inventory inventory = inventory_of(host);
  inventory.units[0].is_excluded = true;
  inventory.units[0].health_text = "excluded";
  inventory.units[1].mig.pop_back();
  const Result<Generated> generated = generate(host.open(), inventory, {});
  ASSERT_TRUE(generated) << generated.error().message;
  EXPECT_EQ(names_of(generated->spec), (std::vector<std::string>{"0:0", "MIG-a", "all"})) << "NVML does not count it";
  EXPECT_EQ(generated->notes, std::vector<std::string>{"GPU 0000:65:00.0 is left out: excluded"});
  inventory.units[1].mig.clear();
  EXPECT_FALSE(generate(host.open(), inventory, {}));
  EXPECT_FALSE(generate(host.open(), {}, {})) << "no GPU at all";
}

TEST(Generate, WritesSpecsOfOtherClasses) {
  const FakeHost host({{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
                       {"sys/dev/char/226:128/device/drm/card0/", ""},
                       {"sys/dev/char/226:128/device/drm/renderD128/", ""}});
  Inventory inventory;
  const auto add = [&inventory](const char* path, device::Part part, Device device) {
    device::Node node;
    node.path = path;
    node.device_class = "amd";
    node.part = part;
    node.live = device;
    node.mode = 0666;
    inventory.nodes.push_back(node);
  };
  add("/dev/dri/renderD128", device::Part::unit, {Kind::character, 226, 128});
  add("/dev/dri/card0", device::Part::extra, {Kind::character, 226, 0});
  add("/dev/dri/card7", device::Part::extra, {Kind::character, 226, 7});
  add("/dev/kfd", device::Part::control, {Kind::character, 511, 0});
  device::Unit unit;
  unit.device_class = "amd";
  unit.name = "renderD128";
  unit.nodes = {"/dev/dri/renderD128"};
  inventory.units.push_back(unit);
  Settings settings;
  settings.device_class = "amd";
  const Result<Generated> generated = generate(host.open(), inventory, settings);
  ASSERT_TRUE(generated) << generated.error().message;
  EXPECT_EQ(generated->spec.kind, "holdfast.dev/amd");
  EXPECT_EQ(names_of(generated->spec), (std::vector<std::string>{"0", "renderD128", "all"}));
  EXPECT_EQ(paths_of(generated->spec, "0"), (std::vector<std::string>{"/dev/dri/renderD128", "/dev/dri/card0"}));
  ASSERT_EQ(generated->spec.all.nodes.size(), 1U);
  EXPECT_EQ(generated->spec.all.nodes[0].path, "/dev/kfd");
  settings.device_class = "fuse";
  const Result<Generated> none = generate(host.open(), inventory, settings);
  ASSERT_FALSE(none);
  EXPECT_TRUE(none.error().message.ends_with("it has: amd")) << none.error().message;
}

TEST(WriteSpec, ReplacesTheFileInOneStepAndCreatesItsDirectory) {
  const FakeHost host(Files{{"proc/self/mountinfo", ""}});
  const std::string file = host.root() + "/etc/cdi/a.yaml";
  for (const char* text : {"old", "new"}) {
    const Result<void> written = write_spec(file, text);
    ASSERT_TRUE(written) << written.error().message;
    std::ostringstream read;
    read << std::ifstream(file).rdbuf();
    EXPECT_EQ(read.str(), text);
  }
  struct stat status{};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0644U);
  EXPECT_FALSE(write_spec("/proc/none/a.yaml", "x"));
}

}  // namespace
}  // namespace hf::specs
