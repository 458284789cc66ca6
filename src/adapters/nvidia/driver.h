// Driver: NVIDIA's kernel driver as /proc and /sys show it, without calling NVIDIA's libraries.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/inventory.h"
#include "kernel/files/host.h"

namespace hf::nvidia {

struct Gpu {
  std::string pci;
  std::string model;
  std::string uuid;
  std::optional<std::uint32_t> minor;
  bool is_excluded = false;
};
Gpu parse_gpu(std::string_view information, const std::string& pci);  // /proc/driver/nvidia/gpus/PCI/information

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue …": the version, "" where there is none.
std::string parse_driver_version(std::string_view text);

// "gpu0/gi1/access 12": the minors of /dev/nvidia-caps, by their names in the tree of capabilities.
std::map<std::string, std::uint32_t> parse_mig_minors(std::string_view text);

// Adds GPUs, the device nodes that should exist and the driver's state to an inventory that has /dev and
// /proc/devices.
//
// of_driver: GPUs that are on the bus and unknown to the driver are looked for only where it knows none. A host may
// have hundreds of PCI functions, and each has to be read.
enum class Gpus : std::uint8_t { on_bus, of_driver };
void add_to(device::Inventory& inventory, const kernel::Host& host, Gpus gpus = Gpus::on_bus);

// Is the GPU cut into parts (MIG)? Read from the driver, because NVML may be missing, hang or wake the GPU.
bool has_mig_instances(const kernel::Host& host, const device::Unit& unit);
// One line for each GPU instance, with its compute instances: changes when the GPU is cut in another way.
std::string describe_mig_instances(const kernel::Host& host, const device::Unit& unit);

// Adds the device nodes of the MIG devices that the library listed.
void add_mig_nodes(device::Inventory& inventory, const kernel::Host& host);

// Reads /proc/driver/nvidia/params, which has ModifyDeviceFiles among others.
std::map<std::string, std::string> parse_params(std::string_view text);

}  // namespace hf::nvidia
