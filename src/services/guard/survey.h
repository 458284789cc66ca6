// Survey: which containers are on this host and what they are owed, read away from the loop that heals. Nothing in it
// enters a container: one that hangs must not keep the others waiting.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "adapters/config/config.h"
#include "core/device/inventory.h"
#include "core/report/snapshot.h"
#include "kernel/host.h"
#include "node/census.h"
#include "services/guard/ward.h"

namespace hf::guard {

struct Survey {
  std::vector<WardPtr> wards;
  std::vector<report::WardLine> others;  // that are owed nothing
  device::Inventory inventory;
  std::string online_cpus;
  std::vector<std::string> notes;
  std::int64_t at = 0;           // milliseconds since 1970
  std::uint64_t started_at = 0;  // nanoseconds of CLOCK_MONOTONIC
  std::uint64_t took_ns = 0;
  std::uint64_t cpu_ns = 0;  // what it cost: waiting for others is no cost
};
using SurveyPtr = std::shared_ptr<const Survey>;

// How much of what is known may be kept: `changes` reads only what is new, `everything` forgets it all.
enum class Care : std::uint8_t { changes, everything };

// What a container that has just started is owed: nothing (a null pointer) for most.
struct Newcomer {
  const kernel::Host& host;
  const node::Resident& resident;
  container::Pid creator;
};
Result<WardPtr> examine_newcomer(const Newcomer& newcomer, const config::Config& config,
                                 const device::Inventory& inventory);

class Surveyor {
 public:
  explicit Surveyor(const kernel::Host& host) : host_(host) {}

  Result<Survey> take(const config::Config& config, Care care);

 private:
  Result<WardPtr> examine(const node::Resident& resident, const container::Entitlement& owed, const Survey& survey,
                          const config::Config& config, Care care);
  [[nodiscard]] WardPtr known_as(const node::Resident& resident, const container::Entitlement& owed,
                                 const config::Config& config) const;

  const kernel::Host& host_;
  node::Census census_;
  node::RuntimeVersions versions_;
  std::unordered_multimap<std::string, WardPtr> wards_;  // by id
};

}  // namespace hf::guard
