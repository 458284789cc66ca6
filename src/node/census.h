// Census: every container on this node, from cgroups and /proc outwards; no engine is asked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapters/config/config.h"
#include "adapters/engine/keeper.h"
#include "adapters/oci/spec.h"
#include "core/base/result.h"
#include "core/container/container.h"
#include "kernel/host.h"

namespace hf::node {

struct Resident {
  container::Container container;
  std::optional<oci::Spec> spec;  // of its bundle, where it can be read and trusted
  std::string spec_file;
  std::string spec_problem;  // why there is none
};

struct Census {
  std::vector<Resident> residents;
  std::vector<std::string> notes;  // what could not be looked at

  [[nodiscard]] std::vector<container::Container> containers() const;
};

// What runtimes say of their versions: asked once per program, as long as its file is the same.
class RuntimeVersions {
 public:
  const engine::VersionWords& version_of(const kernel::Host& host, const std::string& program);

 private:
  struct Known {
    std::string stamp;  // of its file
    engine::VersionWords words;
  };
  std::map<std::string, Known> known_;
};

// `before`: who was known already, with the same first process in the same cgroup, is not asked again.
Result<Census> take_census(const kernel::Host& host, const config::Config& config, RuntimeVersions& versions,
                           const Census* before = nullptr);
Result<Census> take_census(const kernel::Host& host, const config::Config& config);

// One container, by a process that has just joined its cgroup: nothing where that cgroup's path names no container.
// `cgroups`: of the containers that are known. Its runtime's version is not asked for: a new container must not wait.
Result<std::optional<Resident>> find_newcomer(const kernel::Host& host, const config::Config& config,
                                              container::Pid process, std::set<std::string> cgroups);

}  // namespace hf::node
