// Survey: who is on this node and what they are owed, read at leisure, away from the loop that heals.
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
#include "kernel/filters.h"
#include "kernel/host.h"
#include "kernel/seat.h"
#include "node/census.h"
#include "services/guard/ward.h"

namespace hf::guard {

struct Survey {
  std::vector<WardPtr> wards;
  std::vector<report::WardLine> others;  // that are owed nothing
  device::Inventory inventory;
  std::string online_cpus;
  std::vector<std::string> notes;
  std::int64_t at = 0;  // milliseconds since 1970
  std::uint64_t took_ns = 0;
};
using SurveyPtr = std::shared_ptr<const Survey>;

// How much of what is known may be kept: `changes` reads only what is new, `everything` forgets it all.
enum class Care : std::uint8_t { changes, everything };

class Surveyor {
 public:
  Surveyor(const kernel::Host& host, kernel::Bpf& bpf, kernel::Seats& seats) : host_(host), bpf_(bpf), seats_(seats) {}

  Result<Survey> take(const config::Config& config, Care care);

  // Something was done to it: what was seen from its seat holds no longer.
  void look_again(const container::ContainerId& id);

 private:
  Result<WardPtr> examine(const node::Resident& resident, const container::Entitlement& owed, const Survey& survey,
                          const config::Config& config, Care care);
  [[nodiscard]] WardPtr known_as(const node::Resident& resident, const container::Entitlement& owed,
                                 const config::Config& config) const;

  const kernel::Host& host_;
  kernel::Bpf& bpf_;
  kernel::Seats& seats_;
  node::Census census_;
  std::unordered_multimap<std::string, WardPtr> wards_;  // by id
};

}  // namespace hf::guard
