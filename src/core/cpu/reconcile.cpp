// A container may be written to CPUs as soon as every other container on them belongs there. Containers whose cpuset is
// unknown are written first, and those that may not be written to keep blocking the CPUs they are on, as far as these
// can be read. When all that are left wait for each other, one is moved aside: it keeps those of its CPUs that it may
// keep or, where there are none, waits in the shared pool, which no container owns.
#include "core/cpu/reconcile.h"

#include <algorithm>
#include <array>

namespace hf::cpu {
namespace {

struct Move {
  const ManagedContainer* managed;
  CpuSet now;  // empty: unknown
  CpuSet then;
  bool is_fixed = false;  // it may not be written to
  bool has_waited = false;

  [[nodiscard]] bool is_done() const { return is_fixed || now == then; }
};

class Planner {
 public:
  explicit Planner(const State& state) : shared_(state.shared) {}

  void add(const ManagedContainer& managed, const CpuSet& then) {
    moves_.push_back({&managed, managed.present.value_or(CpuSet()), then});
  }
  void add_fixed(const ManagedContainer& managed, const CpuSet& then) {
    moves_.push_back({&managed, managed.present.value_or(CpuSet()), then, /*is_fixed=*/true});
  }

  std::vector<Write> plan() {
    for (const Move& move : moves_) {
      count_leaving(move, 1);
    }
    for (Move& move : moves_) {
      if (!move.is_fixed && !move.managed->present) {
        place_unknown(move);
      }
    }
    while (finish_all_clear() || move_one_aside()) {
    }
    return std::move(writes_);
  }

  // The containers that could not be moved, as there is no shared pool to wait in.
  [[nodiscard]] std::vector<const Move*> stuck() const {
    std::vector<const Move*> moves;
    for (const Move& move : moves_) {
      if (!move.is_done()) {
        moves.push_back(&move);
      }
    }
    return moves;
  }

 private:
  // Every other container on the CPUs it would get is to stay on them. It does not leave these itself.
  [[nodiscard]] bool is_clear(const Move& move) const {
    return std::ranges::none_of(move.then - move.now, [&](std::uint32_t cpu) { return leaving_[cpu] > 0; });
  }

  void count_leaving(const Move& move, int change) {
    for (const std::uint32_t cpu : move.now - move.then) {
      leaving_[cpu] += change;
    }
  }

  void place_unknown(Move& move) {
    if (is_clear(move)) {
      write(move, move.then);
    } else if (!shared_.empty()) {
      write(move, shared_);
    }
  }

  bool finish_all_clear() {
    bool has_finished = false;
    for (Move& move : moves_) {
      if (!move.is_done() && is_clear(move)) {
        write(move, move.then);
        has_finished = true;
      }
    }
    return has_finished;
  }

  bool move_one_aside() {
    for (Move& move : moves_) {
      const CpuSet kept = move.now & move.then;
      if (!move.is_done() && !kept.empty() && kept != move.now) {
        write(move, kept);
        return true;
      }
    }
    for (Move& move : moves_) {
      if (!move.is_done() && !move.has_waited && !shared_.empty() && move.now != shared_) {
        move.has_waited = true;
        write(move, shared_);
        return true;
      }
    }
    return false;
  }

  void write(Move& move, const CpuSet& cpus) {
    count_leaving(move, -1);
    move.now = cpus;
    count_leaving(move, 1);
    writes_.push_back({move.managed->id, move.managed->owner, cpus, cpus != move.then});
  }

  CpuSet shared_;
  std::vector<Move> moves_;
  std::vector<Write> writes_;
  std::array<int, kMostCpus> leaving_ = {};  // by CPU: the containers that are on it and are not to stay
};

std::string why_not(const ManagedContainer& managed, const CpuSet& then) {
  if (managed.id.empty() || managed.phase == Phase::unknown) {
    return "its state is not known";
  }
  if (managed.phase == Phase::starting) {
    return "it is not started yet";
  }
  if (managed.phase == Phase::contested) {
    return "another program keeps changing its cpuset";
  }
  return then.empty() ? "no CPU is left for it" : "";
}

}  // namespace

bool blocks_others(const ManagedContainer& managed) {
  return managed.phase != Phase::ended && (managed.phase == Phase::running || !managed.is_of_user);
}

CpuSet target_of(const State& state, const ManagedContainer& managed) {
  const CpuSet* const own = find_entry(state, managed.owner);
  if (own != nullptr) {
    return *own;
  }
  const CpuSet part = managed.confined ? state.shared & *managed.confined : CpuSet();
  return part.empty() ? state.shared : part;
}

Reconciliation plan_reconcile(const State& state, const std::vector<ManagedContainer>& managed_containers) {
  Reconciliation plan;
  Planner planner(state);
  for (const ManagedContainer& managed : managed_containers) {
    if (managed.phase == Phase::ended) {
      continue;  // it may be started again, and its CPUs are kept for it
    }
    const CpuSet then = target_of(state, managed);
    const std::string why = why_not(managed, then);
    if (why.empty()) {
      planner.add(managed, then);
    } else {
      if (blocks_others(managed)) {
        planner.add_fixed(managed, then);
      }
      plan.skipped.push_back({managed.owner, managed.id, why});
    }
  }
  plan.writes = planner.plan();
  for (const Move* move : planner.stuck()) {
    plan.skipped.push_back(
        {move->managed->owner, move->managed->id,
         "its CPUs " + to_string(move->then) + " are still in use by another container that cannot be moved"});
  }
  return plan;
}

}  // namespace hf::cpu
