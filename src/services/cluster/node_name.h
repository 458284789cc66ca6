// NodeName: this host as the API server knows it.
#pragma once

#include <string>

#include "core/base/result.h"

namespace hf::cluster {

// `configured`, or $NODE_NAME, or the host name as kubelet writes it. It becomes part of a path, so a name that no
// cluster node can have is an error.
Result<std::string> node_name(const std::string& configured);

}  // namespace hf::cluster
