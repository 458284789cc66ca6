// Inventory: the devices of this host, their device nodes, and the device numbers that these should have.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/device.h"
#include "core/device/device_class.h"
#include "core/device/systemd_rules.h"

namespace hf::device {

// One device node under the host's /dev, or one that should be there.
struct Node {
  std::string path;
  std::string device_class;
  Part part = Part::unit;
  std::optional<Device> live;      // what /dev has; absent: no such node
  std::optional<Device> expected;  // what the driver says now; absent: not known
  std::uint32_t mode = 0;          // permission bits
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;

  [[nodiscard]] bool is_stale() const { return live && expected && *live != *expected; }
  // The device number a container must have: the driver's, or the node's own where the driver's is not known.
  [[nodiscard]] std::optional<Device> numbers() const { return expected ? expected : live; }
};

enum class Health : std::uint8_t { good, bad, unknown };
std::string to_string(Health health);

struct MigDevice {
  std::string uuid;
  std::uint32_t gpu_instance = 0;
  std::uint32_t compute_instance = 0;
  std::vector<std::string> nodes;  // /dev/nvidia-caps/…
  std::string profile = {};        // "1g.10gb"
};

struct Unit {
  std::string device_class;
  std::string name;   // "0" of GPU 0, "mlx5_0"
  std::string uuid;   // where it has one
  std::string model;  // product name
  std::string pci;    // "0000:65:00.0"
  std::string bus;    // its place in the PCI tree: "pci0000:60/0000:60:01.0/0000:65:00.0"
  std::optional<int> numa;
  std::map<std::string, unsigned> nvlinks;  // how many lead to the device with this PCI address
  std::vector<std::string> nodes;           // its own, the unit's first
  Health health = Health::unknown;
  std::string health_text;
  std::optional<std::uint64_t> memory_bytes;
  std::string compute_capability;  // "9.0" of CUDA; "" where it is not known
  std::vector<MigDevice> mig;
  bool is_mig_capable = false;
  bool mig_enabled = false;
  bool lacks_fabric = false;  // its NVLink fabric is not set up: CUDA does not start
  bool is_excluded = false;   // by the driver's settings: the driver refuses to open it, and libraries do not count it
};

// What the vendor's driver and libraries report, or why they do not.
struct DriverState {
  std::string device_class;
  std::string version;          // of the kernel module; "" where it is not loaded
  std::string library_version;  // of the library in user space
  std::string cuda_version;
  std::string library_error;  // the library's own message
  std::string meaning;        // what that message means
  std::vector<std::string> modules;
};

struct Inventory {
  std::vector<Node> nodes;
  std::vector<Unit> units;
  std::vector<DriverState> states;
  DriverNames drivers;  // of /proc/devices
  std::vector<std::string> notes;

  [[nodiscard]] const Node* find(std::string_view path) const;
  [[nodiscard]] const Unit* unit_with(std::string_view path) const;
  [[nodiscard]] const DriverState* state_of(std::string_view device_class) const;
};

}  // namespace hf::device
