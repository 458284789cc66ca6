// Facts: everything the checks judge by, read beforehand, so that a check is a function of values.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapters/config/config.h"
#include "adapters/kube/checkpoint.h"
#include "adapters/nvidia/kernel_log.h"
#include "adapters/systemd/unit.h"
#include "core/container/gate.h"
#include "core/container/mount.h"
#include "core/container/seat.h"
#include "core/device/inventory.h"
#include "core/device/table.h"
#include "kernel/filters.h"
#include "kernel/host.h"
#include "kernel/process.h"
#include "kernel/seat.h"
#include "node/census.h"
#include "node/evidence.h"

namespace hf::doctor {

// The machine and the ways to ask it; in tests a made-up one.
struct Machine {
  const kernel::Host& host;
  kernel::Filters& filters;
  kernel::Seats& seats;
  std::int64_t now = 0;  // seconds since 1970
  std::chrono::milliseconds longest_look = kernel::kLongestLook;
};

struct HostFacts {
  std::string layout;  // "v1", "v2", "hybrid"
  config::Config config;
  device::Inventory inventory;
  node::Sources sources;
  std::int64_t now = 0;
  std::string jit_harden;  // net.core.bpf_jit_harden
  bool has_systemd = false;
  std::string kubelet_version;
  std::optional<kube::CpuState> cpu_state;
  std::vector<nvidia::LogEvent> log;
  std::map<std::string, std::string> library_files;  // version of libnvidia-ml.so by its path
  std::set<device::Device> linked;                   // devices with a link under /dev/char or in /sys/dev/char
  std::vector<std::string>
      missing_cdi_files;  // files of the host that effective CDI specs mount, and that are not there
  struct HardCodedRule {
    std::string file;
    std::string rule;
    std::uint32_t major = 0;
  };
  std::vector<HardCodedRule> lxc_rules;
  bool has_guard = false;  // holdfastd runs here
  struct History {
    std::size_t rewrites = 0;   // times that its rules were rewritten so that it would have lost something
    bool is_completed = false;  // the guard gave it nodes or rules that its runtime had not
  };
  std::map<std::string, History> history;  // by container, as the journal has it; not of the daemon's own diagnosis
};
struct HostQuestions {
  bool libraries = false;  // what NVML says
  bool journal = false;
};
Result<HostFacts> read_host_facts(const Machine& machine, node::Census& census, HostQuestions questions);

struct ContainerFacts {
  const node::Resident* resident = nullptr;
  std::vector<container::Claim> claims;
  container::Entitlement entitlement;
  std::string ledger_problem;  // why an entry of the ledger is not believed
  container::Observed observed;
  std::string observed_problem;  // why there is none
  std::vector<container::NodeState> nodes;
  std::vector<container::Seen> strangers;  // units of this node it is not owed, as seen from its seat
  std::string seat_problem;
  std::optional<systemd::UnitDevices> unit;
  device::Table unit_table;  // what systemd would let through
  device::Table spec_table;  // what the bundle's rules let through
  bool spec_allows_all = false;
  std::vector<container::Mount> mounts;  // only of containers that are owed something
  kernel::Holders holders;

  [[nodiscard]] const container::Container& container() const { return resident->container; }
};
ContainerFacts read_container_facts(Machine& machine, const HostFacts& host, const node::Resident& resident,
                                    kernel::Depth depth);

}  // namespace hf::doctor
