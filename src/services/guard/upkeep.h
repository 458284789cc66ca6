// Upkeep: what keeps a container from losing anything, and what rules alone cannot mend: systemd is told what it is
// owed, nodes are made anew, the exclusive attachment is made. May wait for others; never done by the loop that heals.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapters/systemd/bus.h"
#include "kernel/filters.h"
#include "kernel/host.h"
#include "services/guard/recorder.h"
#include "services/guard/survey.h"
#include "services/guard/view.h"

namespace hf::guard {

// leave: whoever visits by hand knows nothing of the policy, and must not undo what it asked for.
enum class Locks : std::uint8_t { as_policy_says, leave };

class Upkeep {
 public:
  Upkeep(const kernel::Host& host, kernel::Bpf& bpf) : host_(host), bpf_(bpf) {}

  // What is tried once for a container may be tried again.
  void start_over() { tried_.clear(); }
  // What its cgroup and its unit need; nothing in it enters the container.
  std::vector<Deed> look_after(const Survey& survey, Locks locks = Locks::as_policy_says);
  // What it was seen to lack from inside.
  void mend(const View& view, std::vector<Deed>& deeds);

  // systemd's connection, for waiting: -1 where there is none.
  int descriptor();
  // Has systemd read its units again since?
  bool take_reload();

 private:
  void harden(const WardPtr& ward, std::vector<Deed>& deeds);
  void lock(const WardPtr& ward, std::vector<Deed>& deeds);
  systemd::Bus* bus();
  bool is_first_try(const Ward& ward, const std::string& what);

  const kernel::Host& host_;
  kernel::Bpf& bpf_;
  std::optional<systemd::Bus> bus_;
  std::chrono::steady_clock::time_point retry_bus_at_;
  std::set<std::string> tried_;
};

}  // namespace hf::guard
