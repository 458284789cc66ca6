// A container may be written onto CPUs as soon as nobody is on them who does not belong there. Whoever can go, goes;
// those of whom nobody knows where they are go first, and those that may not be written to stay in the way. When all
// that are left wait for each other, one makes room: it keeps those of its CPUs that it may keep, or, where there is
// none, waits in the shared pool, which is nobody's own.
#include "core/cpu/reconcile.h"

#include <algorithm>

namespace hf::cpu {
namespace {

struct Move {
  const Resident* resident;
  CpuSet now;  // empty: not known
  CpuSet then;
  bool is_fixed = false;  // nobody may write to it
  bool has_waited = false;

  [[nodiscard]] bool is_done() const { return is_fixed || now == then; }
};

class Planner {
 public:
  explicit Planner(const State& state) : shared_(state.shared) {}

  void add(const Resident& resident, const CpuSet& then) {
    moves_.push_back({&resident, resident.present.value_or(CpuSet()), then});
  }
  void add_fixed(const Resident& resident, const CpuSet& then) {
    moves_.push_back({&resident, resident.present.value_or(CpuSet()), then, /*is_fixed=*/true});
  }

  std::vector<Write> plan() {
    for (Move& move : moves_) {
      if (!move.is_fixed && !move.resident->present) {
        find_a_place(move);
      }
    }
    while (!std::ranges::all_of(moves_, &Move::is_done)) {
      if (!finish_one() && !make_room()) {
        break;
      }
    }
    return std::move(writes_);
  }

  // Whoever could not be moved: there is no shared pool to wait in.
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
  // Nobody is on the CPUs it would get who is not to stay on them.
  [[nodiscard]] bool is_clear(const Move& move) const {
    return std::ranges::none_of(moves_, [&](const Move& other) {
      return &other != &move && ((other.now - other.then) & (move.then - move.now)).count() > 0;
    });
  }

  void find_a_place(Move& move) {
    if (is_clear(move)) {
      write(move, move.then);
    } else if (!shared_.empty()) {
      write(move, shared_);
    }
  }

  bool finish_one() {
    const auto found =
        std::ranges::find_if(moves_, [&](const Move& move) { return !move.is_done() && is_clear(move); });
    if (found == moves_.end()) {
      return false;
    }
    write(*found, found->then);
    return true;
  }

  bool make_room() {
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
    move.now = cpus;
    writes_.push_back({move.resident->id, move.resident->owner, cpus, cpus != move.then});
  }

  CpuSet shared_;
  std::vector<Move> moves_;
  std::vector<Write> writes_;
};

std::string why_not(const Resident& resident, const CpuSet& then) {
  if (resident.id.empty() || resident.phase == Phase::unknown) {
    return "its state is not known";
  }
  if (resident.phase == Phase::starting) {
    return "it is not started yet";
  }
  return then.empty() ? "no CPU is left for it" : "";
}

}  // namespace

Reconciliation plan_reconcile(const State& state, const std::vector<Resident>& residents) {
  Reconciliation plan;
  Planner planner(state);
  for (const Resident& resident : residents) {
    if (resident.phase == Phase::ended) {
      continue;  // it may be started again, and its CPUs are kept for it
    }
    const CpuSet then = cpus_for(state, resident.owner);
    const std::string why = why_not(resident, then);
    if (why.empty()) {
      planner.add(resident, then);
    } else {
      planner.add_fixed(resident, then);
      plan.skipped.push_back({resident.owner, resident.id, why});
    }
  }
  plan.writes = planner.plan();
  for (const Move* move : planner.stuck()) {
    plan.skipped.push_back({move->resident->owner, move->resident->id,
                            "its CPUs " + to_string(move->then) + " are still another's, and nobody can make room"});
  }
  return plan;
}

}  // namespace hf::cpu
