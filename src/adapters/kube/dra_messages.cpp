#include "adapters/kube/dra_messages.h"

#include "adapters/kube/dra_health_v1.pb.h"
#include "adapters/kube/dra_v1.pb.h"
#include "core/base/text.h"

namespace hf::kube {
namespace {

template <class Request>
std::vector<resource::ClaimName> names_in(const Request& request) {
  std::vector<resource::ClaimName> names;
  for (const dra::Claim& claim : request.claims()) {
    names.push_back({claim.namespace_(), claim.name(), claim.uid()});
  }
  return names;
}

}  // namespace

std::vector<std::string> dra_services() {
  return {"v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"};
}

std::vector<resource::ClaimName> claims_in(const dra::NodePrepareResourcesRequest& request) {
  return names_in(request);
}
std::vector<resource::ClaimName> claims_in(const dra::NodeUnprepareResourcesRequest& request) {
  return names_in(request);
}

void fill(dra::NodePrepareResourcesResponse& response, const PrepareAnswers& answers) {
  for (const auto& [uid, answer] : answers) {
    dra::NodePrepareResourceResponse& claim = (*response.mutable_claims())[uid];
    if (!answer) {
      claim.set_error(as_utf8(answer.error().message));
      continue;
    }
    for (const resource::PreparedDevice& prepared : answer->devices) {
      dra::Device& device = *claim.add_devices();
      device.add_request_names(prepared.request);
      device.set_pool_name(prepared.pool);
      device.set_device_name(prepared.device);
      device.mutable_cdi_device_ids()->Assign(prepared.cdi_names.begin(), prepared.cdi_names.end());
    }
  }
}

void fill(dra::NodeUnprepareResourcesResponse& response, const UnprepareAnswers& answers) {
  for (const auto& [uid, answer] : answers) {
    (*response.mutable_claims())[uid].set_error(answer ? "" : as_utf8(answer.error().message));
  }
}

v1::NodeWatchResourcesResponse health_of(const std::vector<resource::ClusterDevice>& devices, const std::string& pool,
                                         std::int64_t now) {
  constexpr std::size_t kLongestMessage = 1000;  // kubelet: 1024
  v1::NodeWatchResourcesResponse response;
  for (const resource::ClusterDevice& device : devices) {
    v1::DeviceHealth& health = *response.add_devices();
    health.mutable_device()->set_pool_name(pool);
    health.mutable_device()->set_device_name(device.published.name);
    health.set_health(device.problem ? v1::UNHEALTHY : v1::HEALTHY);
    health.set_last_updated_time(now);
    health.set_message(device.problem ? cut_to(printable(*device.problem), kLongestMessage) : "");
  }
  return response;
}

}  // namespace hf::kube
