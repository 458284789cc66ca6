// Generate: writes the CDI spec of one device class of this host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "adapters/cdi/spec.h"
#include "adapters/nvidia/files.h"
#include "core/base/result.h"
#include "core/device/inventory.h"
#include "kernel/files/host.h"

namespace hf::specs {

// The names of devices: "0" or "0:1", the UUID (or the device node's name if there is none), or both.
enum class Names : std::uint8_t { index, uuid, both };

// A GPU whose own device node is missing: the whole spec is refused, or the GPU is left out and noted.
enum class Incomplete : std::uint8_t { refused, left_out };

struct Settings {
  std::string device_class = "nvidia";
  std::string vendor;       // "": nvidia.com for NVIDIA's, holdfast.dev for all others
  std::string driver_root;  // root directory of a driver that is installed in a container
  nvidia::HookSettings hook;
  Names names = Names::both;
  bool has_all = true;  // add a device named "all"
  Incomplete incomplete = Incomplete::refused;
};

struct Generated {
  cdi::NewSpec spec;
  std::vector<std::string> notes;  // what was left out, and why
};

// Never returns an incomplete spec: if a node that containers need is missing it fails, with an error that names the
// cause and the cure.
Result<Generated> generate(const kernel::Host& host, const device::Inventory& inventory, const Settings& settings);

// Replaces an existing file; creates its directory if it is missing.
Result<void> write_spec(const std::string& file, const std::string& text);

}  // namespace hf::specs
