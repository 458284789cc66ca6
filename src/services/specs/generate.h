// Generate: the CDI spec of a class of this node's devices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "adapters/cdi/spec.h"
#include "adapters/nvidia/files.h"
#include "core/base/result.h"
#include "core/device/inventory.h"
#include "kernel/host.h"

namespace hf::specs {

// How devices are called: "0" or "0:1", by UUID (or the node's name where there is none), or both.
enum class Names : std::uint8_t { index, uuid, both };

struct Settings {
  std::string device_class = "nvidia";
  std::string vendor;       // "": nvidia.com for NVIDIA's, holdfast.dev for all others
  std::string driver_root;  // of a driver that lies in a container of its own
  nvidia::HookSettings hook;
  Names names = Names::both;
  bool has_all = true;  // also a device called "all"
};

struct Generated {
  cdi::NewSpec spec;
  std::vector<std::string> notes;  // what was left out, and why
};

// Never a spec with a hole in it: a node that containers cannot do without and that is missing is an error, which names
// the cause and the cure.
Result<Generated> generate(const kernel::Host& host, const device::Inventory& inventory, const Settings& settings);

// In the place of the file there is, if any; its folder is made where it is missing.
Result<void> write_spec(const std::string& file, const std::string& text);

}  // namespace hf::specs
