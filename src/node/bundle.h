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
#include "kernel/process.h"

namespace hf::node {

// What ties a container to a bundle. keeper: a root process of the host, outside every container, is its parent.
// state: the runtime's state file names this very process. name: only the id; then the bundle itself must name the
// container's cgroup.
enum class Bond : std::uint8_t { keeper, state, name };

struct Bundle {
  Bond bond = Bond::name;
  std::optional<engine::Keeper> keeper;
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

  [[nodiscard]] Bundle find(const std::string& id, const kernel::ProcessHandle& init, const std::string& cgroup) const;

  // The parent of a container's first process, held by a handle of its own: believed only where `is_trusted_keeper`.
  [[nodiscard]] std::optional<engine::Keeper> find_keeper(const kernel::ProcessHandle& init, const std::string& cgroup,
                                                          kernel::ProcessHandle& keeper) const;

  // The id under which a runtime's state file names this process: of a container whose cgroup tells nothing.
  [[nodiscard]] std::optional<std::string> id_of(const kernel::ProcessHandle& init) const;

  // Root of the host, in no container, and not above the cgroup of the container whose monitor it says it is.
  [[nodiscard]] bool is_trusted_keeper(const kernel::ProcessHandle& process, const std::string& cgroup) const;

  // The cgroup of a container at or above this path, "" where there is none.
  [[nodiscard]] std::string container_around(const std::string& path) const;

 private:
  struct StateFile {
    std::string path;
    bool is_crun = false;
  };

  void find_in_usual_places(const std::string& id, const kernel::ProcessHandle& init, Bundle& bundle) const;
  [[nodiscard]] std::optional<oci::RuntimeState> read_state(const StateFile& file) const;

  const kernel::Host& host_;
  std::set<std::string> cgroups_;
  std::multimap<std::string, StateFile> states_;  // by container id
};

}  // namespace hf::node
