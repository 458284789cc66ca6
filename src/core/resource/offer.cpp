#include "core/resource/offer.h"

#include <algorithm>
#include <set>

#include <fnmatch.h>

#include "core/base/text.h"

namespace hf::resource {
namespace {

using device::Inventory;
using device::MigDevice;
using device::Node;
using device::Part;
using device::Unit;

constexpr const char* kWholeGpu = "nvidia.com/gpu";

bool matches(const std::string& pattern, const std::string& text) {
  return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

std::optional<std::string> problem_of(const Inventory& inventory, const std::string& path) {
  const Node* const node = inventory.find(path);
  if (node == nullptr || !node->live) {
    return path + " is missing";
  }
  if (node->is_stale()) {
    return path + " has the device numbers " + to_string(*node->live) + ", the driver has " +
           to_string(*node->expected);
  }
  return std::nullopt;
}

// The node that all devices of a class need, and those that exist and are useful.
std::vector<std::string> shared_nodes(const Inventory& inventory, const device::DeviceClass& of) {
  std::vector<std::string> paths;
  for (const device::NodePattern& pattern : of.nodes) {
    const bool is_known = inventory.find(pattern.glob) != nullptr;
    const bool is_needed = pattern.part == Part::control && pattern.is_implied;
    const bool is_useful = pattern.part == Part::helper || pattern.part == Part::control;
    if (is_needed || (is_useful && is_known)) {
      paths.push_back(pattern.glob);  // the paths of such nodes are no patterns
    }
  }
  return paths;
}

class OfferMaker {
 public:
  OfferMaker(const Inventory& inventory, const device::DeviceClasses& classes, const Policy& policy,
             const DeviceProblems& problems)
      : inventory_(inventory), classes_(classes), policy_(policy), problems_(problems) {}

  std::vector<Offer> make() {
    const std::optional<std::string> why_not_single = check_single();
    std::map<std::string, std::size_t> indices;  // by class
    for (const Unit& unit : inventory_.units) {
      if (unit.is_excluded) {
        continue;
      }
      // NVML gives no index to a GPU that it cannot open.
      const std::string index = unit.nodes.empty() ? unit.name : std::to_string(indices[unit.device_class]++);
      if (unit.mig_enabled && policy_.mig != MigStrategy::none && !unit.nodes.empty()) {
        add_mig(unit, index, why_not_single);
      } else {
        add_unit(unit, index);
      }
    }
    std::vector<Offer> offers;
    offers.reserve(offers_.size());
    for (auto& [name, offer] : offers_) {
      offers.push_back(std::move(offer));
    }
    return offers;
  }

 private:
  struct Candidate {
    const Unit& unit;
    std::string index;
    std::string uuid;
    std::vector<std::string> own_nodes;
    std::optional<std::string> problem;
  };

  // NVIDIA's meaning of "single": all GPUs have MIG devices, and all of these have one profile.
  [[nodiscard]] std::optional<std::string> check_single() const {
    std::set<std::string> profiles;
    std::size_t with = 0;
    std::size_t without = 0;
    for (const Unit& unit : inventory_.units) {
      (unit.mig_enabled ? with : without) += unit.device_class == "nvidia" && !unit.is_excluded ? 1 : 0;
      for (const MigDevice& mig : unit.mig) {
        profiles.insert(mig.profile);
      }
    }
    if (policy_.mig != MigStrategy::single || with == 0) {
      return std::nullopt;
    }
    if (without > 0) {
      return "the MIG strategy is single, and only some GPUs have MIG enabled";
    }
    return profiles.size() > 1 ? std::optional("the MIG strategy is single, and there are MIG devices of several " +
                                               ("profiles: " + join({profiles.begin(), profiles.end()}, ", ")))
                               : std::nullopt;
  }

  void add_unit(const Unit& unit, const std::string& index) {
    for (const ResourceRule& rule : policy_.rules) {
      const bool is_match = matches(rule.pattern, unit.model) || matches(rule.pattern, unit.name);
      if (rule.is_mig || rule.device_class != unit.device_class || !is_match) {
        continue;
      }
      Candidate candidate{unit, index, unit.uuid.empty() ? unit.name : unit.uuid, {}, std::nullopt};
      std::ranges::copy_if(unit.nodes, std::back_inserter(candidate.own_nodes), [&](const std::string& path) {
        return unit.device_class != "nvidia" || !path.starts_with("/dev/dri/");  // only for graphics, by CDI
      });
      if (candidate.own_nodes.empty()) {
        candidate.problem = "it has no device node";
      } else if (unit.mig_enabled) {
        candidate.problem =
            "MIG is enabled, so it cannot be used as a whole; migStrategy single or mixed offers its parts";
      }
      add(rule.resource, std::move(candidate));
      return;
    }
  }

  void add_mig(const Unit& unit, const std::string& index, const std::optional<std::string>& why_not) {
    for (std::size_t i = 0; i < unit.mig.size(); ++i) {
      const MigDevice& mig = unit.mig[i];
      Candidate candidate{unit, index + ":" + std::to_string(i), mig.uuid, {unit.nodes.front()}, why_not};
      candidate.own_nodes.insert(candidate.own_nodes.end(), mig.nodes.begin(), mig.nodes.end());
      constexpr std::size_t kNodes = 3;  // of the GPU, the GPU instance and the compute instance
      if (candidate.own_nodes.size() < kNodes) {
        candidate.problem = "the driver does not list its nodes in /proc/driver/nvidia-caps";
      }
      if (const std::optional<std::string> resource = resource_of(mig)) {
        add(*resource, std::move(candidate));
      }
    }
  }

  [[nodiscard]] std::optional<std::string> resource_of(const MigDevice& mig) const {
    if (policy_.mig == MigStrategy::single) {
      return kWholeGpu;
    }
    bool has_rules = false;
    for (const ResourceRule& rule : policy_.rules) {
      has_rules = has_rules || rule.is_mig;
      if (rule.is_mig && matches(rule.pattern, mig.profile)) {
        return rule.resource;
      }
    }
    if (has_rules) {
      return std::nullopt;
    }
    std::string name = "nvidia.com/mig-" + mig.profile;
    std::ranges::replace(name, '+', '.');
    return name;
  }

  [[nodiscard]] std::optional<std::string> problem_of_unit(const Unit& unit) const {
    if (const auto found = problems_.find(key_of(unit)); found != problems_.end()) {
      return found->second;
    }
    if (unit.health == device::Health::bad) {
      return unit.health_text.empty() ? "the driver reports an error" : unit.health_text;
    }
    return unit.lacks_fabric ? std::optional<std::string>("its NVLink fabric is not set up") : std::nullopt;
  }

  void add(const std::string& resource, Candidate candidate) {
    const Unit& unit = candidate.unit;
    OfferedDevice device;
    device.device = policy_.ids == IdKind::index && unit.device_class == "nvidia" ? candidate.index : candidate.uuid;
    device.unit = key_of(unit);
    device.nodes = std::move(candidate.own_nodes);
    device.numa = unit.numa;
    if (const device::DeviceClass* const of = device::find_class(classes_, unit.device_class)) {
      const std::vector<std::string> shared = shared_nodes(inventory_, *of);
      device.nodes.insert(device.nodes.end(), shared.begin(), shared.end());
    }
    device.problem = candidate.problem ? std::move(candidate.problem) : problem_of_unit(unit);
    for (const std::string& path : device.nodes) {
      device.problem = device.problem ? std::move(device.problem) : problem_of(inventory_, path);
    }
    add_replicas(resource, unit.device_class, std::move(device));
  }

  void add_replicas(const std::string& resource, const std::string& device_class, OfferedDevice device) {
    const auto sharing = std::ranges::find(policy_.sharing, resource, &Sharing::resource);
    const bool is_shared = sharing != policy_.sharing.end() && sharing->replicas > 1;
    const std::string name = is_shared ? name_of(*sharing, policy_) : resource;
    Offer& offer = offers_[name];
    offer.resource = name;
    offer.device_class = device_class;
    offer.replicas = is_shared ? sharing->replicas : 1;
    for (unsigned i = 0; i < offer.replicas; ++i) {
      device.id = is_shared ? device.device + "::" + std::to_string(i) : device.device;
      offer.devices.push_back(device);
      if (const auto found = problems_.find(device.id); found != problems_.end() && device.is_healthy()) {
        offer.devices.back().problem = found->second;
      }
    }
  }

  const Inventory& inventory_;
  const device::DeviceClasses& classes_;
  const Policy& policy_;
  const DeviceProblems& problems_;
  std::map<std::string, Offer> offers_;
};

}  // namespace

const OfferedDevice* Offer::find(std::string_view id) const {
  const auto found = std::ranges::find(devices, id, &OfferedDevice::id);
  return found == devices.end() ? nullptr : &*found;
}

std::vector<Offer> offers_of(const Inventory& inventory, const device::DeviceClasses& classes, const Policy& policy,
                             const DeviceProblems& problems) {
  return OfferMaker(inventory, classes, policy, problems).make();
}

std::string key_of(const Unit& unit) {
  return !unit.uuid.empty() ? unit.uuid : !unit.pci.empty() ? unit.pci : unit.name;
}

std::set<std::string> problem_keys(const Unit& unit, const std::vector<Offer>& offers,
                                   const std::vector<Offer>& cluster_offers, const std::set<std::string>& given) {
  std::set<std::string> keys;
  for (const std::vector<Offer>* const front : {&offers, &cluster_offers}) {
    for (const Offer& offer : *front) {
      for (const OfferedDevice& device : offer.devices) {
        if (device.unit == key_of(unit) && given.contains(device.id)) {
          keys.insert(device.id);
        }
      }
    }
  }
  return keys.empty() ? std::set{key_of(unit)} : keys;
}

std::size_t OfferStatus::healthy() const {
  return std::size_t(std::ranges::count_if(offer.devices, &OfferedDevice::is_healthy));
}

}  // namespace hf::resource
