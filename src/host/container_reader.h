// ContainerReader: everything that is known of one container, read from its first process, its monitor and its bundle.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "adapters/config/config.h"
#include "core/base/result.h"
#include "host/census.h"
#include "host/group.h"
#include "kernel/files/host.h"
#include "kernel/process/process.h"

namespace hf::host {

class ContainerReader {
 public:
  // `versions`: absent where the runtime must not be asked for its version. `cgroups`: of all known containers.
  ContainerReader(const kernel::Host& host, const config::Config& config, RuntimeVersions* versions,
                  std::set<std::string> cgroups);
  ContainerReader(const ContainerReader&) = delete;
  ContainerReader& operator=(const ContainerReader&) = delete;
  ~ContainerReader();

  // Fails where the container has ended meanwhile, or is none.
  Result<DiscoveredContainer> read_container(const Group& group);

 private:
  class Reading;
  std::unique_ptr<Reading> reading_;
};

std::optional<std::string> cpus_of(
    const kernel::ProcessHandle& process);  // that it may run on: "0-3,8"; absent: it has ended

}  // namespace hf::host
