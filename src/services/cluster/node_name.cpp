#include "services/cluster/node_name.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "core/base/text.h"
#include "core/notice/pod_event.h"
#include "kernel/net/socket.h"

namespace hf::cluster {

Result<std::string> node_name(const std::string& configured) {
  const char* const variable = std::getenv("NODE_NAME");
  std::string name = configured;
  if (name.empty() && variable != nullptr) {
    name = variable;
  }
  if (name.empty()) {
    name = kernel::own_host_name();
    std::ranges::transform(name, name.begin(), [](unsigned char byte) { return char(std::tolower(byte)); });
  }
  if (!notice::is_object_name(name)) {
    return fail(std::errc::invalid_argument, "kube.api.node: " + quote(name) + " is no name of a cluster node");
  }
  return name;
}

}  // namespace hf::cluster
