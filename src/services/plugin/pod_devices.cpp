#include "services/plugin/pod_devices.h"

#include <algorithm>

#include "core/resource/allocation.h"
#include "kernel/files/file.h"

namespace hf::plugin {
namespace {

using resource::Offer;
using resource::OfferedDevice;

// kubelet creates a pod's directory after it has admitted the pod, when the network is ready.
constexpr std::uint64_t kRemembered = 300'000'000'000;

const OfferedDevice* find(const std::vector<Offer>& offers, const std::string& resource, const std::string& id) {
  const auto offer = std::ranges::find(offers, resource, &Offer::resource);
  return offer == offers.end() ? nullptr : offer->find(id);
}

std::vector<kube::Allocation> allocations_in(const host::Sources& sources) {
  return sources.checkpoint ? sources.checkpoint->allocations : std::vector<kube::Allocation>();
}

}  // namespace

host::Sources PodDevices::read_sources() const {
  host::Sources sources;
  sources.kubelet = kubelet_;
  host::read_allocations(host_, sources);
  return sources;
}

void PodDevices::remember(const std::string& resource, const std::vector<std::string>& ids, std::uint64_t now) {
  const std::vector<kube::Allocation> written = allocations_in(read_sources());
  for (const std::string& id : ids) {
    Remembered& remembered = remembered_[{resource, id}] = {.at = now, .before = {}};
    for (const kube::Allocation& allocation : written) {
      if (allocation.resource == resource && std::ranges::find(allocation.ids, id) != allocation.ids.end()) {
        remembered.before.insert(allocation.pod_uid);
      }
    }
  }
}

resource::Taken PodDevices::given(const Offers& offers, std::uint64_t now) {
  resource::Taken taken;
  const auto take = [&](const std::string& resource, const std::string& id, const std::string& owner) {
    if (const OfferedDevice* const device = find(offers, resource, id)) {
      taken.emplace(device->nodes, owner + " has it as " + resource);
    }
  };
  for (const kube::Allocation& allocation : allocations_in(read_sources())) {
    for (const std::string& id : is_alive(allocation.pod_uid) ? allocation.ids : std::vector<std::string>()) {
      const auto remembered = remembered_.find({allocation.resource, id});
      if (remembered != remembered_.end() && !remembered->second.before.contains(allocation.pod_uid)) {
        remembered_.erase(remembered);
      }
      take(allocation.resource, id, "the pod " + allocation.pod_uid);
    }
  }
  std::erase_if(remembered_, [now](const auto& one) { return one.second.at + kRemembered < now; });
  for (const auto& [device, remembered] : remembered_) {
    take(device.first, device.second, "a pod that is about to start");
  }
  return taken;
}

resource::Taken PodDevices::claimed(const Offers& offers, const resource::Policy& policy,
                                    const std::set<std::string>& known) const {
  const host::Sources sources = read_sources();
  std::map<std::string, std::string> owners;  // by CDI name
  for (const kube::PreparedClaim& claim : sources.prepared) {
    if (!known.contains(claim.name) &&
        std::ranges::any_of(claim.pod_uids, [this](const std::string& pod) { return is_alive(pod); })) {
      for (const std::string& name : claim.cdi_devices) {
        owners.emplace(name, "the claim " + claim.name + " has it");
      }
    }
  }
  resource::Taken taken;
  for (const Offer& offer : offers) {
    for (const OfferedDevice& device : offer.devices) {
      // Claims name devices by UUIDs, also where kubelet knows them by index.
      for (const std::string& name : {device.device, device.unit}) {
        if (const auto owner = owners.find(cdi_kind(policy, offer.device_class) + "=" + name); owner != owners.end()) {
          taken.emplace(device.nodes, owner->second);
        }
      }
    }
  }
  return taken;
}

std::set<std::string> PodDevices::ids_given_to(const std::string& pod) const {
  const host::Sources sources = read_sources();
  std::set<std::string> ids;
  for (const kube::Allocation& allocation : allocations_in(sources)) {
    if (allocation.pod_uid == pod) {
      ids.insert(allocation.ids.begin(), allocation.ids.end());
    }
  }
  for (const kube::PreparedClaim& claim : sources.prepared) {
    if (std::ranges::count(claim.pod_uids, pod) > 0) {
      for (const std::string& name : claim.cdi_devices) {
        ids.insert(name.substr(name.find('=') + 1));
      }
    }
  }
  return ids;
}

// kubelet leaves a pod that has ended in its checkpoint until it admits another one, but removes its directory.
bool PodDevices::is_alive(const std::string& pod) const {
  const std::string pods = kernel::below_root(kubelet_) + "/pods";
  return !kernel::exists(host_.root.get(), pods) || kernel::exists(host_.root.get(), pods + "/" + pod);
}

}  // namespace hf::plugin
