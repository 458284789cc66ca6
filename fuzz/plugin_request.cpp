// kubelet's requests to the device plugin: any bytes that are such a message get a whole answer or a refusal in one
// line.
#include <algorithm>
#include <set>
#include <string>

#include "adapters/kube/device_plugin.pb.h"
#include "adapters/kube/plugin_messages.h"
#include "check.h"
#include "core/resource/allocation.h"
#include "core/resource/preference.h"

namespace {

using hf::resource::Offer;

// Two GPUs with three replicas each; one of the second is not healthy.
Offer make_offer() {
  Offer offer{"nvidia.com/gpu", "nvidia", 3, {}};
  for (const std::string gpu : {"a", "b"}) {
    for (int i = 0; i < 3; ++i) {
      const std::string id = gpu + "::" + std::to_string(i);
      offer.devices.push_back({id, gpu, gpu, {"/dev/" + gpu, "/dev/nvidiactl"}, {}, {}});
    }
  }
  offer.devices.back().problem = "/dev/b is missing";
  return offer;
}

void check_line(const std::string& message) {
  check(!message.empty() && message.find('\n') == std::string::npos, "a refusal is one line");
}

void allocate(const Offer& offer, const v1beta1::AllocateRequest& request) {
  v1beta1::AllocateResponse response;
  for (const std::vector<std::string>& ids : hf::kube::ids_in(request)) {
    const hf::Result<hf::resource::Allocation> given = hf::resource::allocate(offer, ids, {});
    if (!given) {
      check_line(given.error().message);
      continue;
    }
    hf::kube::add_to(response, *given);
    std::set<std::string> paths;
    for (const v1beta1::DeviceSpec& device : response.container_responses().rbegin()->devices()) {
      paths.insert(device.host_path());
    }
    for (const std::string& id : ids) {
      const hf::resource::OfferedDevice* const device = offer.find(id);
      check(device != nullptr && device->is_healthy(), "only healthy devices are given");
      check(std::ranges::all_of(device->nodes, [&](const std::string& node) { return paths.contains(node); }),
            "the whole set is given");
    }
  }
  (void)response.SerializeAsString();
}

void prefer(const Offer& offer, const v1beta1::PreferredAllocationRequest& request) {
  for (const hf::resource::Choice& choice : hf::kube::choices_in(request)) {
    const hf::Result<std::vector<std::string>> chosen =
        hf::resource::prefer(offer, choice, {}, hf::resource::Spread::packed);
    if (!chosen) {
      check_line(chosen.error().message);
      continue;
    }
    const std::set<std::string> ids(chosen->begin(), chosen->end());
    check(ids.size() == choice.count, "as many as wanted, none twice");
    const auto is_offered = [&choice](const std::string& id) {
      return std::ranges::find(choice.available, id) != choice.available.end() ||
             std::ranges::find(choice.must_include, id) != choice.must_include.end();
    };
    check(std::ranges::all_of(ids, is_offered), "only what is available");
    check(std::ranges::all_of(choice.must_include, [&](const std::string& id) { return ids.contains(id); }),
          "all that must be included");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const Offer offer = make_offer();
  if (v1beta1::AllocateRequest request; request.ParseFromString(bytes)) {
    allocate(offer, request);
  }
  if (v1beta1::PreferredAllocationRequest request; request.ParseFromString(bytes)) {
    prefer(offer, request);
  }
  return 0;
}
