// Facts: everything the checks need, read in advance, so that each check is a pure function of values.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/config/config.h"
#include "adapters/kube/checkpoint.h"
#include "adapters/nvidia/kernel_log.h"
#include "adapters/systemd/unit.h"
#include "core/container/cgroup/mount.h"
#include "core/container/entitlement/node_state.h"
#include "core/container/gate/gate.h"
#include "core/device/inventory.h"
#include "core/device/table.h"
#include "core/report/history.h"
#include "host/census.h"
#include "host/evidence.h"
#include "host/inventory.h"
#include "host/open_host.h"
#include "kernel/cgroup/filters.h"
#include "kernel/container/node_prober.h"
#include "kernel/files/host.h"
#include "kernel/process/process.h"

namespace hf::doctor {

struct HostFacts {
  config::Config config;
  device::Inventory inventory;
  host::Sources sources;
  bool has_v2 = false;                      // cgroup v2 is mounted
  std::optional<std::uint32_t> jit_harden;  // net.core.bpf_jit_harden
  bool has_systemd = false;
  bool has_nri = false;  // an engine serves the socket of the configuration
  std::string kubelet_version;
  std::optional<kube::CpuState> cpu_state;
  std::vector<nvidia::LogEvent> log;
  std::map<std::string, std::string> library_files;  // version of libnvidia-ml.so by its path
  std::set<device::Device> linked;                   // devices with an entry in /dev/char, /dev/block or /sys/dev
  struct MissingFile {
    std::string path;
    std::string spec;  // the CDI spec that mounts it

    friend auto operator<=>(const MissingFile&, const MissingFile&) = default;
  };
  std::set<MissingFile> missing_cdi_files;  // host files that effective CDI specs mount and that do not exist
  struct HardCodedRule {
    std::string file;
    std::string rule;
    std::uint32_t major = 0;
  };
  std::vector<HardCodedRule> lxc_rules;
  bool has_guard = false;     // holdfastd runs here
  report::Histories history;  // from the journal
};
// The version in the name of one of the driver's libraries: "550.54.15" of libnvidia-ml.so.550.54.15. Absent for other
// files. It is compared as text: the driver itself demands the very same text of its libraries.
std::optional<std::string> library_version_in(std::string_view file_name);

Result<HostFacts> read_host_facts(const host::OpenHost& opened, host::Census& census, host::Libraries libraries);
// None where there is no journal.
report::Histories read_histories(const kernel::Host& host, const config::Config& config);

struct ContainerFacts {
  const host::DiscoveredContainer* discovered = nullptr;
  std::vector<container::Claim> claims;
  container::Entitlement entitlement;
  std::string ledger_problem;  // why an entry of the ledger is not trusted
  container::Observed observed;
  std::string observed_problem;  // why the rules could not be read
  std::vector<container::NodeState> nodes;
  std::vector<container::NodeView> not_owed;  // units of this host it is not owed, as seen from inside the container
  std::optional<systemd::UnitDevices> unit;
  device::Table unit_table;  // what systemd's unit would allow
  device::Table spec_table;  // what the bundle's rules allow
  bool spec_allows_all = false;
  std::vector<container::Mount> mounts;  // read only for containers that are owed something
  kernel::Holders holders;

  [[nodiscard]] const container::Container& container() const { return discovered->container; }
};
ContainerFacts read_container_facts(host::OpenHost& opened, const HostFacts& host,
                                    const host::DiscoveredContainer& discovered, kernel::Depth depth);

}  // namespace hf::doctor
