// Snapshot: the state of the host as the daemon knows it. JSON, metrics and the web page are rendered from it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/shared.h"
#include "core/container/container.h"
#include "core/container/entitlement/entitlement.h"
#include "core/container/entitlement/node_state.h"
#include "core/container/guard/tier.h"
#include "core/device/inventory.h"
#include "core/report/blame.h"
#include "core/report/cpu_report.h"
#include "core/report/finding.h"
#include "core/report/history.h"
#include "core/resource/offer.h"

namespace hf::report {

// Counts of durations by bucket. The bounds are in nanoseconds; the last bucket has none.
struct Histogram {
  static constexpr std::array<std::uint64_t, 14> kBounds = {
      10'000,    25'000,     50'000,      100'000,       250'000,        500'000,        1'000'000,
      2'500'000, 10'000'000, 100'000'000, 1'000'000'000, 10'000'000'000, 60'000'000'000, 600'000'000'000};
  std::array<std::uint64_t, kBounds.size() + 1> counts{};
  std::uint64_t sum = 0;  // nanoseconds

  void add(std::uint64_t nanoseconds);
  [[nodiscard]] std::uint64_t total() const;
};

struct Counters {
  static constexpr std::size_t kMostWriters = 50;  // the rest is counted as "other"

  std::map<std::pair<std::string, std::string>, std::uint64_t> losses;  // by cause ("attach", "write", …) and writer
  std::map<std::pair<std::string, std::string>, std::uint64_t> heals;   // by action and result ("ok", "failed")
  std::map<std::string, std::uint64_t> events;                          // by kind
  std::uint64_t held_opens = 0;                                         // requests that only the shield let through
  Histogram loss_duration;
  Histogram heal_duration;
  std::uint64_t surveys = 0;
  std::uint64_t survey_ns = 0;  // of the last one

  // Labels the loss with the writer's service or name. The labels are limited, as processes can have any name.
  void count_loss(const std::string& cause, const container::Writer& writer);
};

// A container of the host. There may be thousands, and snapshots are taken all the time, so that what the survey found
// is shared and not copied.
struct ContainerStatus {
  Shared<container::Container> container;
  Shared<container::Entitlement> owed;
  Shared<std::vector<container::NodeState>> nodes;
  container::State state = container::State::not_owed;
  std::vector<std::string> codes;  // of its findings
  std::string mode;                // "heal", "observe", …; "" where it is owed nothing
  std::uint64_t losses = 0;
  std::uint64_t heals = 0;
  std::int64_t last_loss_at = 0;  // milliseconds since 1970; 0: none
  bool is_hardened = false;
  bool is_locked = false;
  bool is_shielded = false;      // no open of an owed device can fail, whatever is done to the container's own rules
  std::string why_not_shielded;  // the reason where it is not
  std::uint64_t held_opens = 0;  // requests that only the shield let through
};

struct Snapshot {
  std::int64_t at = 0;  // milliseconds since 1970
  std::string version;
  std::string kernel;
  std::string layout;  // "v1", "v2", "hybrid"
  std::string host_name;
  std::int64_t started_at = 0;  // of the daemon
  container::Tiers tiers;
  bool is_blind = false;  // the last survey failed, or nothing is watched at all
  std::string why_blind;
  std::vector<std::string> missing_capabilities;  // capabilities that the daemon needs
  std::int64_t surveyed_at = 0;
  std::vector<ContainerStatus> containers;  // all of the host, including those that are owed nothing
  Shared<std::vector<Finding>> findings;
  device::Inventory inventory;
  std::vector<resource::OfferStatus> offers;  // to kubelet, while holdfast-kube runs
  std::string online_cpus;                    // "0-63"
  std::shared_ptr<const CpuStatus> cpus;      // of the CPU manager, shared with it; null: it is off
  std::vector<BlameRecordPtr> records;        // the latest, newest last
  Histories histories;                        // from all records that were kept; for the findings, not shown
  Counters counters;
};

}  // namespace hf::report
