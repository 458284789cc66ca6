// Inventory: the devices of this host, read from /proc, /sys and /dev, and from NVIDIA's libraries where wanted.
#pragma once

#include <cstdint>

#include "adapters/config/config.h"
#include "adapters/nvidia/driver.h"
#include "core/device/inventory.h"
#include "kernel/files/host.h"

namespace hf::host {

// Asking may wake a sleeping GPU, which takes seconds. ask_for_mig: NVML alone, and only where a GPU can have MIG
// devices, whose names NVML alone knows; everything else is below /proc.
enum class Libraries : std::uint8_t { ask, ask_for_mig, leave };

device::Inventory take_inventory(const kernel::Host& host, const config::Config& config,
                                 nvidia::Gpus gpus = nvidia::Gpus::on_bus);
device::Inventory take_inventory(const kernel::Host& host, const config::Config& config, Libraries libraries);

// Whether a GPU of this host can be cut into parts (MIG).
bool may_have_mig(const kernel::Host& host);

// systemd's device rules name drivers and paths: their meaning depends on the drivers and device nodes of this host.
device::DeviceAllowContext device_allow_context(const kernel::Host& host, const device::Inventory& inventory);

}  // namespace hf::host
