// Bundle: the directory with the runtime's configuration of a container, found through its monitor process.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapters/engine/monitor.h"
#include "adapters/oci/spec.h"
#include "adapters/oci/state.h"
#include "core/container/container.h"
#include "kernel/files/fd.h"
#include "kernel/files/host.h"
#include "kernel/process/process.h"

namespace hf::host {

// What ties a container to a bundle. monitor: a root process of the host, outside every container, is its parent.
// state: the runtime's state file names this very process. name: only the id; then the bundle itself must name the
// container's cgroup.
enum class BundleEvidence : std::uint8_t { monitor, state, name };

struct Bundle {
  BundleEvidence evidence = BundleEvidence::name;
  std::optional<engine::Monitor> monitor;
  kernel::Fd directory;
  std::string path;
  engine::ShimOptions options;             // of containerd's shim
  std::optional<oci::RuntimeState> state;  // where no monitor process named the bundle
  std::string problem;                     // why there is no directory
};

// Reads the parent of the container's first process, then the directories where runtimes and engines keep their files.
class BundleFinder {
 public:
  // `cgroups`: those of all containers; a process in one of them is no monitor process.
  BundleFinder(const kernel::Host& host, const std::vector<std::string>& state_roots, std::set<std::string> cgroups);

  [[nodiscard]] Bundle find(const std::string& id, const kernel::ProcessHandle& init, const std::string& cgroup) const;

  // The parent of a container's first process, with a handle in `monitor`: used only where `is_trusted_monitor`.
  [[nodiscard]] std::optional<engine::Monitor> find_monitor(const kernel::ProcessHandle& init,
                                                            const std::string& cgroup,
                                                            kernel::ProcessHandle& monitor) const;

  // The id under which a runtime's state file names this process, for a container whose cgroup path contains no id.
  [[nodiscard]] std::optional<std::string> id_of(const kernel::ProcessHandle& init) const;

  // Runs as root of the host, in no container, and not above the cgroup of the container whose monitor it claims to be.
  [[nodiscard]] bool is_trusted_monitor(const kernel::ProcessHandle& process, const std::string& cgroup) const;

  // The cgroup of a container at or above this path, "" where there is none.
  [[nodiscard]] std::string container_around(const std::string& path) const;

 private:
  struct StateFile {
    std::string path;
    bool is_crun = false;
  };

  void find_in_default_directories(const std::string& id, const kernel::ProcessHandle& init, Bundle& bundle) const;
  [[nodiscard]] std::optional<oci::RuntimeState> read_state(const StateFile& file) const;

  const kernel::Host& host_;
  std::set<std::string> cgroups_;
  std::multimap<std::string, StateFile> states_;  // by container id
};

}  // namespace hf::host
