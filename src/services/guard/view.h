// View: what a guarded container sees of the nodes it is owed, looked at from inside; and when to look again.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
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
  // Every container that was looked at is due again.
  void expect_all();
  void expect(const Ward& ward);

  [[nodiscard]] bool is_due(const Ward& ward, std::uint64_t now) const;
  void has_looked(const View& view, std::uint64_t now);
  void forget_all_but(const std::vector<WardPtr>& wards);
  // When the next container that was set aside is tried again; 0 where there is none.
  [[nodiscard]] std::uint64_t next_retry() const;

 private:
  struct Entry {
    bool is_done = false;
    std::uint64_t retry_at = 0;
    std::uint64_t pause = 0;
  };
  std::map<std::string, Entry> entries_;  // by key_of
};

}  // namespace hf::guard
