// Inventory: the devices of this node, read from /proc, /sys and /dev, and asked of NVIDIA's libraries where wanted.
#pragma once

#include <cstdint>

#include "adapters/config/config.h"
#include "core/device/inventory.h"
#include "kernel/host.h"

namespace hf::node {

enum class Libraries : std::uint8_t { ask, leave };  // asking may wake a sleeping GPU and takes its time

device::Inventory take_inventory(const kernel::Host& host, const config::Config& config);
device::Inventory take_inventory(const kernel::Host& host, const config::Config& config, Libraries libraries);

// Rules in systemd's words need to know the drivers and nodes of this host.
device::DeviceWords words_of(const kernel::Host& host, const device::Inventory& inventory);

}  // namespace hf::node
