// Inventory: the devices of this node, the nodes they have, and the numbers those ought to have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/device.h"
#include "core/device/device_class.h"
#include "core/device/systemd_words.h"

namespace hf::device {

// One node under the host's /dev, or one that ought to be there.
struct Node {
  std::string path;
  std::string device_class;
  Part part = Part::unit;
  std::optional<Device> live;      // what /dev has; absent: no such node
  std::optional<Device> expected;  // what the driver says now; absent: nothing tells
  std::uint32_t mode = 0;          // permission bits
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;

  [[nodiscard]] bool is_stale() const { return live && expected && *live != *expected; }
  // The numbers a container must have: the driver's, and the node's own where nothing else tells.
  [[nodiscard]] std::optional<Device> numbers() const { return expected ? expected : live; }
};

enum class Health : std::uint8_t { good, bad, unknown };
std::string to_string(Health health);

struct MigDevice {
  std::string uuid;
  std::uint32_t gpu_instance = 0;
  std::uint32_t compute_instance = 0;
  std::vector<std::string> nodes;  // /dev/nvidia-caps/…
};

struct Unit {
  std::string device_class;
  std::string name;   // "0" of GPU 0, "mlx5_0"
  std::string uuid;   // where it has one
  std::string model;  // in people's words
  std::string pci;    // "0000:65:00.0"
  std::optional<int> numa;
  std::vector<std::string> nodes;  // its own, the unit's first
  Health health = Health::unknown;
  std::string health_words;
  std::optional<std::uint64_t> memory_bytes;
  std::vector<MigDevice> mig;
  bool mig_enabled = false;
  bool is_excluded = false;  // by the driver's settings: it refuses to open it, and libraries do not count it
};

// What the vendor's libraries say of themselves, or why they do not.
struct DriverState {
  std::string device_class;
  std::string version;          // of the kernel's module; "" where it is not loaded
  std::string library_version;  // of the library in user space
  std::string cuda_version;
  std::string library_error;  // the library's own words
  std::string meaning;        // and what they mean
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
