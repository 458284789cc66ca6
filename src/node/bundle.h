// Bundle: where the runtime's own words about a container lie, found through the process that keeps it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapters/engine/keeper.h"
#include "adapters/oci/spec.h"
#include "adapters/oci/state.h"
#include "core/container/container.h"
#include "kernel/fd.h"
#include "kernel/host.h"

namespace hf::node {

// What ties a container to a bundle. keeper: a root process of the host, outside every container, is its parent.
// state: the runtime's state file names this very process. name: only the id; then the bundle itself must name the
// container's cgroup.
enum class Bond : std::uint8_t { keeper, state, name };

struct Bundle {
  Bond bond = Bond::name;
  std::optional<engine::Keeper> keeper;
  container::Pid keeper_pid;
  kernel::Fd folder;
  std::string path;
  engine::ShimOptions options;             // of containerd's shim
  std::optional<oci::RuntimeState> state;  // where no keeper told of the bundle
  std::string problem;                     // why there is no folder
};

// Looks at the parent of the container's first process, then into the folders where runtimes and engines put things.
class BundleFinder {
 public:
  // `cgroups`: of all containers; who sits in one of them keeps nobody.
  BundleFinder(const kernel::Host& host, const std::vector<std::string>& state_roots, std::set<std::string> cgroups);

  [[nodiscard]] Bundle find(const std::string& id, container::Pid init, const std::string& cgroup) const;

  // Who calls this process its own in a state folder: the id of a container whose cgroup tells nothing.
  [[nodiscard]] std::optional<std::string> id_of(container::Pid init) const;

  // Root of the host in its own root folder, in no container, and not above the cgroup of the container it keeps.
  [[nodiscard]] bool is_trusted_keeper(container::Pid pid, const std::string& cgroup) const;

  // The cgroup of a container at or above this path, "" where there is none.
  [[nodiscard]] std::string container_around(const std::string& path) const;

 private:
  struct StateFile {
    std::string path;
    bool is_crun = false;
  };

  void find_in_usual_places(const std::string& id, container::Pid init, Bundle& bundle) const;
  [[nodiscard]] bool is_about(const oci::RuntimeState& state, container::Pid init) const;
  [[nodiscard]] std::optional<oci::RuntimeState> read_state(const StateFile& file) const;

  const kernel::Host& host_;
  std::set<std::string> cgroups_;
  std::multimap<std::string, StateFile> states_;  // by container id
};

}  // namespace hf::node
