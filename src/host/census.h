// Census: every container on this host, found through cgroups and /proc without asking an engine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapters/config/config.h"
#include "adapters/engine/monitor.h"
#include "adapters/oci/spec.h"
#include "core/base/result.h"
#include "core/base/shared.h"
#include "core/container/container.h"
#include "kernel/files/host.h"

namespace hf::host {

struct DiscoveredContainer {
  container::Container container;
  std::optional<oci::Spec> spec;  // of its bundle, where it can be read and trusted
  std::string spec_file;
  std::string spec_problem;  // why there is none
};

struct Census {
  std::vector<DiscoveredContainer> discovered_containers;
  std::vector<std::string> notes;  // what could not be read

  [[nodiscard]] std::vector<container::Container> containers() const;
};

// A cache of the runtimes' versions: a program is run again only when its file has changed.
class RuntimeVersions {
 public:
  const engine::ParsedVersion& version_of(const kernel::Host& host, const std::string& program);

 private:
  struct Known {
    std::string stamp;  // of its file
    engine::ParsedVersion version;
  };
  std::map<std::string, Known> known_;
};

// What is kept of a container for the next census. A host may have thousands: the container itself is shared.
struct KnownContainer {
  Shared<container::Container> container;
  oci::Spec spec;
  std::string spec_file;
};

// Known containers with the same first process in the same cgroup are not read again.
Result<Census> take_census(const kernel::Host& host, const config::Config& config, RuntimeVersions& versions,
                           const std::vector<KnownContainer>& known);
Result<Census> take_census(const kernel::Host& host, const config::Config& config);

// One container, by a process that has just joined its cgroup: nothing where that cgroup's path names no container.
// `cgroups`: those of known containers. The runtime's version is not read: a new container must not wait for it.
Result<std::optional<DiscoveredContainer>> find_newcomer(const kernel::Host& host, const config::Config& config,
                                                         container::Pid process, std::set<std::string> cgroups);

}  // namespace hf::host
