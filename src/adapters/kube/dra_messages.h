// Messages of kubelet's API for DRA drivers as values of ours.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/resource/cluster_device.h"
#include "core/resource/resource_claim.h"

namespace k8s::io::kubelet::pkg::apis::dra::v1 {
class NodePrepareResourcesRequest;
class NodePrepareResourcesResponse;
class NodeUnprepareResourcesRequest;
class NodeUnprepareResourcesResponse;
}  // namespace k8s::io::kubelet::pkg::apis::dra::v1
namespace v1 {
class NodeWatchResourcesResponse;
}

namespace hf::kube {

namespace dra = k8s::io::kubelet::pkg::apis::dra::v1;

// Names of services, as registrations list them: kubelet takes the first one that it knows.
std::vector<std::string> dra_services();

std::vector<resource::ClaimName> claims_in(const dra::NodePrepareResourcesRequest& request);
std::vector<resource::ClaimName> claims_in(const dra::NodeUnprepareResourcesRequest& request);

using PrepareAnswers = std::map<std::string, Result<resource::PreparedClaim>>;  // by UID
void fill(dra::NodePrepareResourcesResponse& response, const PrepareAnswers& answers);
using UnprepareAnswers = std::map<std::string, Result<void>>;  // by UID
void fill(dra::NodeUnprepareResourcesResponse& response, const UnprepareAnswers& answers);

// `now`: in seconds of Unix time. kubelet calls a device unknown that it has not heard of for 30 s.
v1::NodeWatchResourcesResponse health_of(const std::vector<resource::ClusterDevice>& devices, const std::string& pool,
                                         std::int64_t now);

}  // namespace hf::kube
