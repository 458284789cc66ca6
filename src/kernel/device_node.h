// DeviceNode: the device nodes there are.
#pragma once

#include <string>
#include <vector>

#include "core/device/device.h"

namespace hf::kernel {

// Every device that has a node below a folder, each once, sorted. What cannot be looked at is passed over.
std::vector<device::Device> read_device_nodes(const std::string& folder);

}  // namespace hf::kernel
