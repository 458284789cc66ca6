// View: what a guarded container sees of the nodes it is owed, looked at from inside; and when to look again.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/container/seat.h"
#include "core/device/inventory.h"
#include "kernel/bpf_api.h"
#include "kernel/host.h"
#include "kernel/seat.h"
#include "services/guard/ward.h"

namespace hf::guard {

struct View {
  WardPtr ward;
  std::vector<container::NodeState> nodes;
  bool has_timed_out = false;

  // Nodes that the policy lets us make, and that would help.
  [[nodiscard]] std::vector<container::NodeState> to_mend() const;
};

struct Eyes {
  const kernel::Host& host;
  kernel::Bpf& bpf;
  kernel::Seats& seats;
};
View look_inside(const Eyes& eyes, const WardPtr& ward, const device::Inventory& inventory,
                 std::chrono::milliseconds limit = kernel::kLongestLook);

// Which containers are due for a look. One that hangs is set aside, each time for longer, and delays only itself.
class LookSchedule {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  // New ones are due at once, those that ended are forgotten.
  void follow(const std::vector<WardPtr>& wards);
  // Every container that was looked at is due again.
  void expect_all();
  void expect(const Ward& ward);

  // The one that waits longest; null where none is due.
  [[nodiscard]] WardPtr find_due(std::uint64_t now) const;
  void has_looked(const View& view, std::uint64_t now);
  // When the next one is due, or kNever.
  [[nodiscard]] std::uint64_t next_due() const;

 private:
  struct Entry {
    WardPtr ward;
    std::uint64_t due_at = kNever;
    std::uint64_t pause = 0;
  };
  void set_due(Entry& entry, std::uint64_t at);

  std::map<std::string, Entry> entries_;                    // by key_of
  std::set<std::pair<std::uint64_t, const Entry*>> queue_;  // those that are due at some time
};

}  // namespace hf::guard
