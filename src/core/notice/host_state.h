// HostState: what the guard says about the containers of this host now, and a watch over it that notices changes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/container/container.h"
#include "core/container/entitlement/node_state.h"
#include "core/notice/pod_event.h"

namespace hf::notice {

// A container that is owed something, or asks for something and is owed nothing (State::not_owed).
struct ContainerState {
  std::string id;
  std::string title;
  std::optional<container::Pod> pod = std::nullopt;
  container::State state = container::State::ok;
  std::vector<std::string> devices = {};  // that it cannot use
  std::string verdict = {};               // of its worst finding: "HF-101: …"
  bool is_hosts_fault = false;            // no process inside can have caused it

  [[nodiscard]] bool lacks_something() const;
};

struct HostState {
  std::int64_t at = 0;    // milliseconds since 1970
  std::string why_blind;  // "": the guard watches
  std::vector<ContainerState> containers;
};

// Times are nanoseconds of CLOCK_MONOTONIC. A loss counts once it has lasted longer than any repair takes.
class StateWatch {
 public:
  static constexpr std::uint64_t kSettled = 10'000'000'000;
  static constexpr std::uint64_t kLongestDoubt = 120'000'000'000;

  // What a record said: its container need not be announced again.
  void note(const PodEvent& event, std::uint64_t now);
  // What changed: containers that lost something, have it again, are at risk, or ask in vain. Only for states of a
  // guard that watches: a blind one may list no container at all.
  std::vector<PodEvent> follow(const HostState& state, std::uint64_t now);
  // The containers that lack something which the guard did not repair.
  [[nodiscard]] const std::vector<ContainerState>& lacking() const { return lacking_; }
  // Whether what the first state showed has lasted long enough to count. Until then no one can say that nothing is
  // lost, and for some time not while a container of then has not been judged once.
  [[nodiscard]] bool is_settled(std::uint64_t now) const {
    return began_ && now - *began_ >= (has_doubt_ ? kLongestDoubt : kSettled);
  }

 private:
  struct Known {
    std::optional<std::uint64_t> lost_since;
    bool is_announced = false;  // as lost
    bool is_at_risk = false;
    std::optional<std::uint64_t> ignored_since = std::nullopt;  // it asks for what it is not owed
    bool is_ignored = false;                                    // and that was announced
  };

  std::vector<PodEvent> follow_loss(const ContainerState& it, std::int64_t at, std::uint64_t now);
  std::vector<PodEvent> follow_request(const ContainerState& it, std::int64_t at, std::uint64_t now);
  std::vector<PodEvent> follow_rest(const ContainerState& it, std::int64_t at, std::uint64_t now);
  void keep(const ContainerState& it, const std::vector<ContainerState>& before, std::uint64_t now);

  std::map<std::string, Known> known_;  // by container id
  std::vector<ContainerState> lacking_;
  std::optional<std::uint64_t> began_;
  bool has_doubt_ = false;
};

}  // namespace hf::notice
