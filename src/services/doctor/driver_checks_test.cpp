#include <gtest/gtest.h>

#include "support/doctor_cases.h"

namespace hf::test {
namespace {

using Kind = nvidia::LogEvent::Kind;

void unload(HostScene& scene) { scene.host.inventory.states.front().version.clear(); }

void log(HostScene& scene, Kind kind, std::uint32_t xid, const char* pci) {
  scene.host.log.push_back({kind, xid, pci, "a line of the kernel log"});
}

std::vector<HostCase> gpu_cases() {
  return {
      {"HF-306", "a GPU in bad health", Found{"/dev/nvidia1"},
       [](HostScene& scene) { scene.host.inventory.units[1].health = device::Health::bad; }},
      {"HF-306", "a GPU that fell off the bus", Found{"/dev/nvidia0"},
       [](HostScene& scene) { log(scene, Kind::xid, 79, "0000:65:00"); }},
      {"HF-306", "a GPU that could not be initialised", Found{"/dev/nvidia1"},
       [](HostScene& scene) { log(scene, Kind::initialisation_failed, 0, "0000:b3:00"); }},
      {"HF-306", "an application's fault", kNotFound,
       [](HostScene& scene) { log(scene, Kind::xid, 31, "0000:65:00"); }},
      {"HF-306", "a GPU that this host does not have", kNotFound,
       [](HostScene& scene) { log(scene, Kind::xid, 79, "0000:17:00"); }},
      {"HF-306", "an event that names no GPU", kNotFound, [](HostScene& scene) { log(scene, Kind::xid, 79, ""); }},
      {"HF-306", "no driver, which HF-301 reports", kNotFound,
       [](HostScene& scene) {
         scene.host.inventory.units[1].health = device::Health::bad;
         unload(scene);
       }},
      {"HF-306", "no fabric, which HF-314 reports", kNotFound,
       [](HostScene& scene) {
         scene.host.inventory.units[1].health = device::Health::bad;
         scene.host.inventory.units[1].lacks_fabric = true;
       }},
      {"HF-314", "no fabric", Found{"/dev/nvidia1"},
       [](HostScene& scene) { scene.host.inventory.units[1].lacks_fabric = true; }},
      {"HF-314", "a GPU in bad health", kNotFound,
       [](HostScene& scene) { scene.host.inventory.units[1].health = device::Health::bad; }},
  };
}

std::vector<HostCase> version_cases() {
  return {
      {"HF-301", "the module is not loaded", Found{}, unload},
      {"HF-301", "no GPU", kNotFound, [](HostScene& scene) { scene.host.inventory.states.clear(); }},

      {"HF-305", "only libraries of another version", Found{},
       [](HostScene& scene) { scene.host.library_files = {{"/usr/lib64/libnvidia-ml.so.535.54.03", "535.54.03"}}; }},
      {"HF-305", "libraries of another version as well", kNotFound,
       [](HostScene& scene) { scene.host.library_files["/usr/lib/libnvidia-ml.so.535.54.03"] = "535.54.03"; }},
      {"HF-305", "no libraries", kNotFound, [](HostScene& scene) { scene.host.library_files.clear(); }},
      {"HF-305", "no driver", kNotFound,
       [](HostScene& scene) {
         scene.host.library_files = {{"/usr/lib64/libnvidia-ml.so.535.54.03", "535.54.03"}};
         unload(scene);
       }},

      {"HF-313", "nvidia-uvm is not loaded", Found{},
       [](HostScene& scene) { scene.host.inventory.drivers.character.erase("nvidia-uvm"); }},
      {"HF-313", "no module is loaded", kNotFound,
       [](HostScene& scene) {
         scene.host.inventory.drivers.character.erase("nvidia-uvm");
         unload(scene);
       }},

      {"HF-315", "NVML fails", Found{},
       [](HostScene& scene) { scene.host.inventory.states.front().library_error = "Unknown Error"; }},
      {"HF-315", "NVML fails as no driver is loaded", kNotFound,
       [](HostScene& scene) {
         scene.host.inventory.states.front().library_error = "Driver Not Loaded";
         unload(scene);
       }},
  };
}

std::vector<HostCase> setting_cases() {
  return {
      {"HF-307", "hardened for all users", Found{}, [](HostScene& scene) { scene.host.jit_harden = 2; }},
      {"HF-307", "hardened for users without privileges", kNotFound,
       [](HostScene& scene) { scene.host.jit_harden = 1; }},
      {"HF-307", "a kernel without the setting", kNotFound, [](HostScene& scene) { scene.host.jit_harden.reset(); }},
      {"HF-307", "hardened, on cgroup v1", kNotFound,
       [](HostScene& scene) {
         scene.host.jit_harden = 2;
         scene.host.has_v2 = false;
       }},
      {"HF-307", "hardened, without a GPU", kNotFound,
       [](HostScene& scene) {
         scene.host.jit_harden = 2;
         scene.host.inventory.states.clear();
       }},

      {"HF-312", "no-cgroups = true", Found{}, [](HostScene& scene) { scene.host.sources.nvidia.no_cgroups = true; }},
      {"HF-312", "no-cgroups = false", kNotFound,
       [](HostScene& scene) { scene.host.sources.nvidia.no_cgroups = false; }},
  };
}

}  // namespace

std::vector<HostCase> driver_cases() { return concatenate({gpu_cases(), version_cases(), setting_cases()}); }

namespace {

TEST(DriverChecks, TellAnExcludedGpuFromASickOne) {
  HostScene scene;
  scene.host.inventory.units[0].health = device::Health::bad;
  scene.host.inventory.units[0].is_excluded = true;
  EXPECT_TRUE(doctor::find_sick_gpus(scene.host, {}).front().cure.front().starts_with("remove it from"));
  log(scene, Kind::xid, 79, "0000:65:00");
  EXPECT_TRUE(doctor::find_sick_gpus(scene.host, {}).front().cure.front().starts_with("taint or drain"));
}

TEST(DriverChecks, ReadVersionsFromTheNamesOfLibraries) {
  EXPECT_EQ(doctor::library_version_in("libnvidia-ml.so.550.54.15"), "550.54.15");
  EXPECT_EQ(doctor::library_version_in("libnvidia-ml.so.1"), std::nullopt);
  EXPECT_EQ(doctor::library_version_in("libnvidia-ml.so"), std::nullopt);
  EXPECT_EQ(doctor::library_version_in("libcuda.so.550.54.15"), std::nullopt);
}

}  // namespace
}  // namespace hf::test
