// Policy: which devices of a host are offered to kubelet, under which resource names, and how a container gets them.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::resource {

// none:   MIG devices are not offered, and a GPU is offered as if it had none.
// single: every GPU has MIG devices of one profile; they are offered as "nvidia.com/gpu".
// mixed:  MIG devices are offered by profile ("nvidia.com/mig-1g.10gb"), other GPUs as "nvidia.com/gpu".
enum class MigStrategy : std::uint8_t { none, single, mixed };

// How a container gets its devices. Each has NVIDIA's name.
enum class DeviceListStrategy : std::uint8_t { envvar, volume_mounts, cdi_annotations, cdi_cri };
std::string to_string(DeviceListStrategy strategy);
Result<DeviceListStrategy> parse_device_list_strategy(std::string_view text);

enum class IdKind : std::uint8_t { uuid, index };

// Which replicas are preferred: those of devices that are used least, or those of devices that are used most.
enum class Spread : std::uint8_t { distributed, packed };

// Devices of a class whose model, name or MIG profile matches are offered as this resource.
struct ResourceRule {
  std::string resource;  // "nvidia.com/gpu"
  std::string device_class = "nvidia";
  std::string pattern = "*";  // as fnmatch(3) means it
  bool is_mig = false;        // matches MIG profiles instead of models
};

struct Sharing {
  std::string resource;
  std::string rename;  // "": the resource keeps its name
  unsigned replicas = 1;
};

struct Policy {
  std::vector<ResourceRule> rules = {{"nvidia.com/gpu"}};  // of the rules that match a device the first counts
  MigStrategy mig = MigStrategy::none;
  std::set<DeviceListStrategy> strategies = {DeviceListStrategy::cdi_cri};
  bool passes_nodes =
      true;  // as device nodes too: also a runtime that knows no CDI gets them, and no update loses them
  IdKind ids = IdKind::uuid;
  std::vector<Sharing> sharing;
  bool renames_shared = false;      // "nvidia.com/gpu" is offered as "nvidia.com/gpu.shared"
  bool allows_one_replica = false;  // a request for more than one replica is refused: it would not be more GPU
  Spread spread = Spread::distributed;
  std::string cdi_vendor;                         // "": nvidia.com for NVIDIA's, holdfast.dev for all others
  std::string annotation_prefix = "cdi.k8s.io/";  // where CDI names are passed as annotations
};

// The resource as which the replicas are offered.
std::string name_of(const Sharing& sharing, const Policy& policy);

// The domain and the name of an extended resource, as kubelet accepts it. An error says what is wrong.
Result<void> check_resource_name(std::string_view name);

}  // namespace hf::resource
