#include "core/resource/cluster_device.h"

#include <algorithm>
#include <set>

#include "core/base/text.h"
#include "core/resource/allocation.h"

namespace hf::resource {
namespace {

using device::Inventory;
using device::MigDevice;
using device::Unit;

// Kubernetes: names of devices are DNS labels; texts of attributes have at most 64 bytes.
constexpr std::size_t kLongestName = 63;
constexpr std::size_t kLongestText = 64;

std::string label_of(std::string_view text) {
  std::string label;
  for (const char character : text.substr(0, kLongestName)) {
    const bool is_upper = character >= 'A' && character <= 'Z';
    const bool is_plain = (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9');
    label += is_upper ? char(character - 'A' + 'a') : is_plain ? character : '-';
  }
  const std::size_t first = label.find_first_not_of('-');
  return first == std::string::npos ? "" : label.substr(first, label.find_last_not_of('-') + 1 - first);
}

std::string name_of(const Unit& unit, const std::string& device) {
  return label_of(unit.device_class == "nvidia" ? device : unit.device_class + "-" + device);
}

const MigDevice* find_mig(const Unit& unit, const std::string& uuid) {
  const auto found = std::ranges::find(unit.mig, uuid, &MigDevice::uuid);
  return found == unit.mig.end() ? nullptr : &*found;
}

// The root of its PCI tree: devices with the same one are close to each other.
std::string pcie_root(const Unit& unit) { return unit.bus.substr(0, unit.bus.find('/')); }

class Attributes {
 public:
  void add(const std::string& key, const std::string& text) {
    if (!text.empty() && text.size() <= kLongestText) {
      all_.emplace(key, as_utf8(text));
    }
  }
  void add(const std::string& key, const std::optional<SemanticVersion>& version) {
    if (version && version->text.size() <= kLongestText) {
      all_.emplace(key, *version);
    }
  }
  void add(const std::string& key, std::optional<int> number) {
    if (number) {
      all_.emplace(key, std::int64_t(*number));
    }
  }
  std::map<std::string, Attribute> take() { return std::move(all_); }

 private:
  std::map<std::string, Attribute> all_;
};

std::map<std::string, Attribute> attributes_of(const Inventory& inventory, const Unit& unit, const MigDevice* mig) {
  Attributes attributes;
  const bool is_nvidia = unit.device_class == "nvidia";
  attributes.add("type", mig != nullptr ? "mig" : is_nvidia ? "gpu" : unit.device_class);
  attributes.add("uuid", mig != nullptr ? mig->uuid : unit.uuid);
  attributes.add("productName", unit.model);
  attributes.add("numaNode", unit.numa);
  attributes.add("resource.kubernetes.io/pcieRoot", pcie_root(unit));
  attributes.add("resource.kubernetes.io/pciBusID", unit.pci);
  if (mig != nullptr) {
    attributes.add("parentUUID", unit.uuid);
    attributes.add("profile", mig->profile);
  }
  if (const device::DriverState* const state = inventory.state_of(unit.device_class)) {
    attributes.add("driverVersion", semantic_version(state->version));
    attributes.add("cudaDriverVersion", semantic_version(state->cuda_version));
  }
  return attributes.take();
}

// The physical device, as OfferedDevice has it.
std::string unit_of(const PublishedDevice& device) {
  for (const char* key : {"parentUUID", "uuid"}) {
    const auto found = device.attributes.find(key);
    if (found != device.attributes.end() && std::holds_alternative<std::string>(found->second)) {
      return std::get<std::string>(found->second);
    }
  }
  return device.name;
}

std::optional<std::string> use_of(const std::vector<std::string>& nodes, const Taken& taken) {
  const auto found = taken.find(nodes);
  return found == taken.end() ? std::nullopt : std::optional("it is in use: " + found->second);
}

}  // namespace

std::optional<SemanticVersion> semantic_version(std::string_view text) {
  constexpr std::size_t kNumbers = 3;
  std::vector<std::string> numbers;
  for (const std::string_view part : split(text, '.')) {
    const std::optional<std::uint64_t> number = parse_number<std::uint64_t>(part);
    if (!number || numbers.size() == kNumbers) {
      return std::nullopt;
    }
    numbers.push_back(std::to_string(*number));
  }
  numbers.resize(kNumbers, "0");
  return SemanticVersion{join(numbers, ".")};
}

Policy cluster_policy(const Policy& policy) {
  Policy changed = policy;
  changed.mig = MigStrategy::mixed;
  changed.ids = IdKind::uuid;
  changed.sharing.clear();
  return changed;
}

std::vector<ClusterDevice> cluster_devices(const Inventory& inventory, const std::vector<Offer>& offers,
                                           const Policy& policy) {
  std::vector<ClusterDevice> devices;
  std::set<std::string> names;
  for (const Offer& offer : offers) {
    for (const OfferedDevice& offered : offer.devices) {
      const auto unit = std::ranges::find_if(inventory.units, [&](const Unit& one) {
        return one.device_class == offer.device_class && key_of(one) == offered.unit;
      });
      std::string name = unit == inventory.units.end() ? "" : name_of(*unit, offered.device);
      if (name.empty() || !names.insert(name).second) {
        continue;
      }
      const MigDevice* const mig = find_mig(*unit, offered.device);
      ClusterDevice device{{std::move(name), attributes_of(inventory, *unit, mig), {}},
                           offered.nodes,
                           cdi_kind(policy, offer.device_class) + "=" + offered.device,
                           offered.problem,
                           std::nullopt,
                           false};
      if (mig == nullptr && unit->memory_bytes) {
        device.published.capacity["memory"] = *unit->memory_bytes;
      }
      devices.push_back(std::move(device));
    }
  }
  std::ranges::sort(devices, {}, [](const ClusterDevice& one) { return one.published.name; });
  return devices;
}

std::vector<PublishedDevice> published_of(const std::vector<ClusterDevice>& devices) {
  std::vector<PublishedDevice> published;
  for (const ClusterDevice& device : devices) {
    if (!device.problem) {
      published.push_back(device.published);
    }
  }
  return published;
}

Offer offer_of(const std::string& driver, const std::vector<ClusterDevice>& devices) {
  Offer offer{driver, {}, 1, {}};
  for (const ClusterDevice& device : devices) {
    const std::string& name = device.published.name;
    offer.devices.push_back({name, name, unit_of(device.published), device.nodes, std::nullopt,
                             device.is_taken ? std::nullopt : device.problem});
  }
  return offer;
}

void hold_taken(std::vector<Offer>& offers, const Taken& taken) {
  for (Offer& offer : offers) {
    for (OfferedDevice& device : offer.devices) {
      device.problem = device.problem ? std::move(device.problem) : use_of(device.nodes, taken);
    }
  }
}

void hold_taken(std::vector<ClusterDevice>& devices, const Taken& taken) {
  for (ClusterDevice& device : devices) {
    if (!device.problem) {
      device.problem = use_of(device.nodes, taken);
      device.is_taken = device.problem.has_value();
    }
  }
}

}  // namespace hf::resource
