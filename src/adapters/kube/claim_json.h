// ClaimJson: ResourceClaims (resource.k8s.io/v1) of the API server, and the file that remembers which are prepared.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/resource/resource_claim.h"

namespace hf::kube {

std::string claim_path(const resource::ClaimName& claim);
Result<resource::ResourceClaim> parse_claim(std::string_view json);

// The file is all or nothing: where a part of it is damaged, none of it counts.
std::string render_prepared(const std::vector<resource::PreparedClaim>& claims);
Result<std::vector<resource::PreparedClaim>> parse_prepared(std::string_view json);

}  // namespace hf::kube
