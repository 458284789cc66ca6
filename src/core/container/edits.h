// Edits: what a container's spec needs so that the container can use a device. NVIDIA's files, CDI specs and device
// classes make them; the OCI spec, CDI files and answers of a device plugin show them.
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
  std::optional<device::Device> device;  // absent: whatever the host's node has when the container is made
  device::Access access = device::Access::read | device::Access::write | device::Access::mknod;  // none: no rule
  std::optional<std::uint32_t> mode = std::nullopt;                                              // permission bits
  std::optional<std::uint32_t> uid = std::nullopt;
  std::optional<std::uint32_t> gid = std::nullopt;

  [[nodiscard]] const std::string& on_host() const { return host_path.empty() ? path : host_path; }
  friend bool operator==(const NodeEdit&, const NodeEdit&) = default;
};

struct MountEdit {
  std::string source;
  std::string destination;
  std::string type = {};  // "" for a file or folder of the host
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
std::optional<HookStage> parse_hook_stage(std::string_view word);

// Runtimes hand the container's environment, or the engine's, to a hook that has none of its own: an image could speak
// to the loader of the hook's program.
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
  std::vector<std::string> environment = {};  // "NAME=value"; the last of a name counts
  std::vector<NodeEdit> nodes = {};
  std::vector<MountEdit> mounts = {};
  std::vector<HookEdit> hooks = {};
  std::vector<std::uint32_t> gids = {};                 // additional groups of the first process
  std::map<std::string, std::string> net_devices = {};  // the host's name → the container's
  std::optional<IntelRdtEdit> intel_rdt = std::nullopt;

  [[nodiscard]] bool is_empty() const;
  friend bool operator==(const ContainerEdits&, const ContainerEdits&) = default;
};

// Adds `more` to `edits`. What is there already is not added again: of nodes and mounts the path decides, of variables
// the name, and the one that comes later counts.
void append(ContainerEdits& edits, const ContainerEdits& more);

}  // namespace hf::container
