// Edits: what a container's spec needs so that the container can use a device. They are created from NVIDIA's files,
// CDI specs and device classes, and written to OCI specs, CDI files and responses of a device plugin.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/device.h"
#include "core/device/rule.h"

namespace hf::container {

struct NodeEdit {
  std::string path;                      // in the container
  std::string host_path = {};            // "" where it is the same
  std::optional<device::Device> device;  // absent: that of the host's device node when the container is created
  device::Access access = device::Access::read | device::Access::write | device::Access::mknod;  // none: no device rule
  std::optional<std::uint32_t> mode = std::nullopt;                                              // permission bits
  std::optional<std::uint32_t> uid = std::nullopt;
  std::optional<std::uint32_t> gid = std::nullopt;

  [[nodiscard]] const std::string& on_host() const { return host_path.empty() ? path : host_path; }
  friend bool operator==(const NodeEdit&, const NodeEdit&) = default;
};

struct MountEdit {
  std::string source;
  std::string destination;
  std::string type = {};  // "" for a file or directory of the host
  std::vector<std::string> options = {};

  friend bool operator==(const MountEdit&, const MountEdit&) = default;
};

enum class HookStage : std::uint8_t {
  prestart,
  create_runtime,
  create_container,
  start_container,
  poststart,
  poststop
};
std::string to_string(HookStage stage);  // "createContainer"
std::optional<HookStage> parse_hook_stage(std::string_view name);

// A hook without an environment of its own inherits the container's or the engine's: an image could then control the
// dynamic loader of the hook's program.
inline constexpr const char* kHookPath = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";

struct HookEdit {
  HookStage stage = HookStage::create_container;
  std::string path;
  std::vector<std::string> arguments = {};  // the program's name first
  std::vector<std::string> environment = {};
  std::optional<int> timeout = std::nullopt;  // seconds

  friend bool operator==(const HookEdit&, const HookEdit&) = default;
};

struct IntelRdtEdit {
  std::string clos_id;
  std::string l3_cache_schema;
  std::string memory_schema;
  std::vector<std::string> schemata = {};
  bool enables_cmt = false;
  bool enables_mbm = false;
  bool enables_monitoring = false;

  friend bool operator==(const IntelRdtEdit&, const IntelRdtEdit&) = default;
};

struct ContainerEdits {
  std::vector<std::string> environment = {};  // "NAME=value"; the last value of a name counts
  std::vector<NodeEdit> nodes = {};
  std::vector<MountEdit> mounts = {};
  std::vector<HookEdit> hooks = {};
  std::vector<std::uint32_t> gids = {};                 // additional groups of the first process
  std::map<std::string, std::string> net_devices = {};  // the host's name → the container's
  std::optional<IntelRdtEdit> intel_rdt = std::nullopt;

  [[nodiscard]] bool is_empty() const;
  friend bool operator==(const ContainerEdits&, const ContainerEdits&) = default;
};

// Adds `more` to `edits`. A device node or mount with the same path, or a variable with the same name, replaces the
// existing one; hooks and groups that are already there are not added again.
void append(ContainerEdits& edits, const ContainerEdits& more);

}  // namespace hf::container
