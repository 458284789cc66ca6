// Survey: which containers are on this host and what they are owed, read outside the loop that heals. A survey enters
// no container: one that hangs must not keep the others waiting.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "adapters/config/config.h"
#include "core/device/inventory.h"
#include "core/report/snapshot.h"
#include "host/census.h"
#include "kernel/files/host.h"
#include "services/guard/guarded_container.h"

namespace hf::guard {

struct Survey {
  std::vector<GuardedContainerPtr> guarded_containers;
  std::vector<report::ContainerStatus> others;  // containers that are owed nothing
  device::Inventory inventory;
  std::string online_cpus;
  std::vector<std::string> notes;
  std::int64_t at = 0;           // milliseconds since 1970
  std::uint64_t started_at = 0;  // nanoseconds of CLOCK_MONOTONIC
  std::uint64_t took_ns = 0;
  std::uint64_t cpu_ns = 0;  // CPU time, without waiting
  std::uint64_t config = 0;  // how often the config had been read again
};
using SurveyPtr = std::shared_ptr<const Survey>;

// How much a survey reads: `changes` only what is new since the last one, `everything` all of it again.
enum class SurveyScope : std::uint8_t { changes, everything };

struct Newcomer {
  const kernel::Host& host;
  const host::DiscoveredContainer& discovered;
  container::Pid creator;
};
// What a container that has just started is owed. A null pointer: nothing, as for most.
Result<GuardedContainerPtr> examine_newcomer(const Newcomer& newcomer, const config::Config& config,
                                             const device::Inventory& inventory);

class Surveyor {
 public:
  // Called with every container before what the guard does not need is dropped, and with the time at which the census
  // began (nanoseconds of CLOCK_MONOTONIC), while the config has CPUs managed; may be empty.
  using Listener = std::function<void(const std::vector<host::DiscoveredContainer>&, std::uint64_t)>;

  explicit Surveyor(const kernel::Host& host, Listener listener = {}) : host_(host), listener_(std::move(listener)) {}

  Result<Survey> take(const config::Config& config, SurveyScope scope);

 private:
  Result<GuardedContainerPtr> examine(const host::DiscoveredContainer& discovered, const container::Entitlement& owed,
                                      const Survey& survey, const config::Config& config, SurveyScope scope);
  void add_container(host::DiscoveredContainer& discovered, container::Entitlement owed, Survey& survey,
                     const config::Config& config, SurveyScope scope);
  [[nodiscard]] GuardedContainerPtr find_known(const host::DiscoveredContainer& discovered,
                                               const container::Entitlement& owed, const config::Config& config) const;

  const kernel::Host& host_;
  Listener listener_;
  std::vector<host::KnownContainer> known_;
  host::RuntimeVersions versions_;
  std::map<ContainerKey, GuardedContainerPtr> guarded_containers_;
};

}  // namespace hf::guard
