#include "adapters/nvidia/driver.h"

#include <gtest/gtest.h>

#include "support/fake_host.h"

namespace hf::nvidia {
namespace {

using test::FakeHost;
using test::Files;

constexpr const char* kInformation =
    "Model: \t\t NVIDIA H200\n"
    "IRQ:   \t\t 132\n"
    "GPU UUID: \t GPU-0f5c3d52-6d1e-9d5a-0000-000000000001\n"
    "Video BIOS: \t 96.00.a5.00.03\n"
    "Bus Type: \t PCIe\n"
    "DMA Size: \t 52 bits\n"
    "DMA Mask: \t 0xfffffffffffff\n"
    "Bus Location: \t 0000:65:00.0\n"
    "Device Minor: \t 3\n"
    "GPU Firmware: \t 580.159.03\n"
    "GPU Excluded:\t No\n";

const Files kCgroups = {{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}};

Files with_cgroups(Files files) {
  files.insert(kCgroups.begin(), kCgroups.end());
  return files;
}

TEST(Gpu, IsReadFromItsInformationFile) {
  const Gpu gpu = parse_gpu(kInformation, "0000:65:00.0");
  EXPECT_EQ(gpu.pci, "0000:65:00.0");
  EXPECT_EQ(gpu.model, "NVIDIA H200");
  EXPECT_EQ(gpu.uuid, "GPU-0f5c3d52-6d1e-9d5a-0000-000000000001");
  EXPECT_EQ(gpu.minor, 3U);
  EXPECT_FALSE(gpu.is_excluded);
  EXPECT_TRUE(parse_gpu("GPU Excluded:\t Yes\n", "").is_excluded);
}

TEST(Gpu, HasNoMinorWhereTheFileHasNoValidOne) {
  for (const char* text : {"", "Device Minor:", "Device Minor: \t -1", "Device Minor: \t 3x", "Device Minor 3",
                           "Device Minor: 99999999999", "\xff\xfe:\xff"}) {
    EXPECT_EQ(parse_gpu(text, "0000:65:00.0").minor, std::nullopt) << text;
  }
}

TEST(DriverVersion, IsTheFirstNumberWithDots) {
  EXPECT_EQ(parse_driver_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC\n"
                                 "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"),
            "550.54.15");
  EXPECT_EQ(parse_driver_version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build  "
                                 "(dvs-builder@U22)  Mon\n"),
            "580.159.03");
  for (const char* text : {"", "GCC version: 12.2.0", "NVRM version:", "NVRM version: NVIDIA UNIX"}) {
    EXPECT_EQ(parse_driver_version(text), "") << text;
  }
}

TEST(MigMinors, AreReadByName) {
  const auto minors =
      parse_mig_minors("config 1\nmonitor 2\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\nbroken\nx -1\n");
  EXPECT_EQ(minors, (std::map<std::string, std::uint32_t>{
                        {"config", 1}, {"monitor", 2}, {"gpu0/gi1/access", 12}, {"gpu0/gi1/ci0/access", 13}}));
}

TEST(DriverParams, AreReadByName) {
  const auto params = parse_params("ModifyDeviceFiles: 1\nDeviceFileUID: 0\nRegistryDwords: \"a:b\"\nbroken\n");
  EXPECT_EQ(params.at("ModifyDeviceFiles"), "1");
  EXPECT_EQ(params.at("RegistryDwords"), "\"a:b\"");
  EXPECT_EQ(params.size(), 3U);
}

TEST(Driver, AddsItsGpusWithTheNodesThatShouldExist) {
  const FakeHost fake(
      with_cgroups({{"proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Kernel Module  580.159.03"},
                    {"proc/driver/nvidia/gpus/0000:65:00.0/information", kInformation},
                    {"sys/module/nvidia/", ""},
                    {"sys/bus/pci/devices/0000:65:00.0/vendor", "0x10de\n"},
                    {"sys/bus/pci/devices/0000:65:00.0/class", "0x030200\n"},
                    {"sys/bus/pci/devices/0000:65:00.0/numa_node", "1\n"},
                    {"sys/bus/pci/devices/0000:65:00.0/drm/card1/", ""},
                    {"sys/bus/pci/devices/0000:65:00.0/drm/controlD65/", ""},
                    {"sys/bus/pci/devices/0000:65:00.0/drm/renderD129/", ""}}));
  device::Inventory inventory;
  inventory.drivers = device::parse_driver_names("Character devices:\n195 nvidia\n510 nvidia-uvm\n");
  add_to(inventory, fake.open());
  ASSERT_EQ(inventory.units.size(), 1U);
  const device::Unit& unit = inventory.units[0];
  EXPECT_EQ(unit.name, "3");
  EXPECT_EQ(unit.numa, 1);
  EXPECT_EQ(unit.nodes, (std::vector<std::string>{"/dev/nvidia3", "/dev/dri/card1", "/dev/dri/renderD129"}));
  ASSERT_NE(inventory.find("/dev/nvidia3"), nullptr);
  EXPECT_EQ(inventory.find("/dev/nvidia3")->expected, (device::Device{device::Kind::character, 195, 3}));
  EXPECT_EQ(inventory.find("/dev/nvidia3")->live, std::nullopt);
  EXPECT_EQ(inventory.find("/dev/nvidia-uvm-tools")->expected, (device::Device{device::Kind::character, 510, 1}));
  EXPECT_EQ(inventory.find("/dev/nvidiactl")->part, device::Part::control);
  ASSERT_NE(inventory.state_of("nvidia"), nullptr);
  EXPECT_EQ(inventory.state_of("nvidia")->version, "580.159.03");
  EXPECT_EQ(inventory.state_of("nvidia")->modules, std::vector<std::string>{"nvidia"});
}

TEST(Driver, AddsAGpuWithoutALoadedDriver) {
  const FakeHost fake(with_cgroups({{"sys/bus/pci/devices/0000:65:00.0/vendor", "0x10de\n"},
                                    {"sys/bus/pci/devices/0000:65:00.0/class", "0x030000\n"},
                                    {"sys/bus/pci/devices/0000:65:00.0/numa_node", "-1\n"},
                                    {"sys/bus/pci/devices/0000:65:00.1/vendor", "0x10de\n"},
                                    {"sys/bus/pci/devices/0000:65:00.1/class", "0x040300\n"},
                                    {"sys/bus/pci/devices/0000:66:00.0/vendor", "0x1002\n"},
                                    {"sys/bus/pci/devices/0000:66:00.0/class", "0x030000\n"}}));
  device::Inventory inventory;
  add_to(inventory, fake.open());
  ASSERT_EQ(inventory.units.size(), 1U);  // neither its audio function nor another vendor's GPU
  EXPECT_EQ(inventory.units[0].pci, "0000:65:00.0");
  EXPECT_EQ(inventory.units[0].health, device::Health::bad);
  EXPECT_EQ(inventory.units[0].health_text, "no driver is loaded");
  EXPECT_EQ(inventory.units[0].numa, std::nullopt);
}

TEST(Driver, LooksOnTheBusOnlyWhereItIsAskedToOrTheDriverHasNoGpu) {
  const Files on_bus = {{"sys/bus/pci/devices/0000:66:00.0/vendor", "0x10de\n"},
                        {"sys/bus/pci/devices/0000:66:00.0/class", "0x030200\n"}};
  Files both = on_bus;
  both["proc/driver/nvidia/gpus/0000:65:00.0/information"] = "Device Minor: \t 0\n";
  const auto units = [](const Files& files, Gpus gpus) {
    const FakeHost fake(with_cgroups(files));
    device::Inventory inventory;
    add_to(inventory, fake.open(), gpus);
    return inventory.units.size();
  };
  EXPECT_EQ(units(both, Gpus::on_bus), 2U);
  EXPECT_EQ(units(both, Gpus::of_driver), 1U);
  EXPECT_EQ(units(on_bus, Gpus::of_driver), 1U);
}

TEST(Driver, AddsNothingOnAHostWithoutNvidiaDevices) {
  const FakeHost fake(kCgroups);
  device::Inventory inventory;
  add_to(inventory, fake.open());
  EXPECT_TRUE(inventory.units.empty());
  EXPECT_TRUE(inventory.nodes.empty());
  EXPECT_TRUE(inventory.states.empty());
}

TEST(Driver, MarksAGpuThatIsExcluded) {
  const FakeHost fake(with_cgroups(
      {{"proc/driver/nvidia/gpus/0000:65:00.0/information", "Device Minor: \t 0\nGPU Excluded:\t Yes\n"}}));
  device::Inventory inventory;
  add_to(inventory, fake.open());
  ASSERT_EQ(inventory.units.size(), 1U);
  EXPECT_EQ(inventory.units[0].health, device::Health::bad);
}

TEST(MigNodes, AreTheAccessFilesOfBothInstances) {
  const FakeHost fake(with_cgroups(
      {{"proc/driver/nvidia-caps/mig-minors", "gpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\ngpu1/gi1/access 99\n"}}));
  device::Inventory inventory;
  inventory.drivers = device::parse_driver_names("Character devices:\n241 nvidia-caps\n");
  device::Unit unit;
  unit.device_class = "nvidia";
  unit.name = "0";
  unit.mig = {{"MIG-1", 1, 0, {}}, {"MIG-2", 7, 0, {}}};
  inventory.units.push_back(unit);
  add_mig_nodes(inventory, fake.open());
  EXPECT_EQ(inventory.units[0].mig[0].nodes,
            (std::vector<std::string>{"/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13"}));
  EXPECT_TRUE(inventory.units[0].mig[1].nodes.empty());
  ASSERT_NE(inventory.find("/dev/nvidia-caps/nvidia-cap12"), nullptr);
  EXPECT_EQ(inventory.find("/dev/nvidia-caps/nvidia-cap12")->expected,
            (device::Device{device::Kind::character, 241, 12}));
}

}  // namespace
}  // namespace hf::nvidia
