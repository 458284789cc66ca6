#include "core/bpf/analysis.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <variant>

namespace hf::bpf {
namespace {

using Tag = Value::Tag;

constexpr std::size_t kMostWork = 8'000'000;  // instructions and rectangles touched; a real filter needs thousands
constexpr std::size_t kMostCuts = 1024;       // of functions of a device number; comparisons with a plain one need none

// Counts the segments that the table of these boxes could have: boxes with many majors and others with many minors
// multiply.
bool is_too_large(const std::vector<device::Box>& boxes) {
  constexpr std::size_t kMostSegments = 1'000'000;
  std::vector<std::uint32_t> cuts;
  cuts.reserve(boxes.size());
  for (const device::Box& box : boxes) {
    cuts.push_back(box.major.first);
  }
  std::ranges::sort(cuts);
  cuts.erase(std::ranges::unique(cuts).begin(), cuts.end());
  std::size_t segments = 0;
  for (const device::Box& box : boxes) {
    const auto first = std::ranges::lower_bound(cuts, box.major.first);
    segments += std::size_t(std::ranges::upper_bound(cuts, box.major.last) - first);
  }
  return segments > kMostSegments;
}

}  // namespace

Analysis::Analysis(const Code& code, const CallNames& names)
    : code_(code), names_(names), live_(live_registers(code)), waiting_(code.size()), is_target_(code.size()) {
  for (std::size_t i = 0; i < code.size(); ++i) {
    const bool jumps = is_own_call(code[i]) || (is_jump_class(code[i]) && !is_call(code[i]) && !is_exit(code[i]));
    if (jumps) {
      is_target_[std::size_t(target_of(code[i], i))] = true;
    }
  }
}

Readable<device::Table> Analysis::run(std::vector<Start> starts, Verdict before) {
  for (Start& from : starts) {
    Path start;
    start.frames.emplace_back();
    start.registers[1] = {Tag::context, 0, 0};
    start.registers[10] = {Tag::stack, 0, 0};
    start.region = std::move(from.region);
    start.accesses = from.accesses;
    start.is_refused = before == Verdict::deny;
    wait(std::move(start));
  }
  while (next_ < code_.size()) {
    if (waiting_[next_].empty()) {
      ++next_;
      continue;
    }
    Path path = std::move(waiting_[next_].back());
    waiting_[next_].pop_back();
    follow(std::move(path));
    if (opaque_) {
      return std::unexpected(*opaque_);
    }
  }
  return conclude();
}

void Analysis::wait(Path path) {
  if (path.region.empty() || path.accesses == 0) {
    return;
  }
  for (unsigned number = 0; number < kRegisters; ++number) {
    if ((live_[path.at] >> number & 1U) == 0) {
      path.registers[number] = Value();
    }
  }
  next_ = std::min(next_, path.at);
  for (Path& other : waiting_[path.at]) {
    spend(1);
    if (other.continues_like(path)) {
      spend(path.region.size() + other.region.size() / 16);
      other.region.merge(std::move(path.region));
      return;
    }
  }
  waiting_[path.at].push_back(std::move(path));
}

void Analysis::wait_here(Path path) {
  if (!path.region.empty() && path.accesses != 0) {
    next_ = std::min(next_, path.at);
    waiting_[path.at].push_back(std::move(path));
  }
}

void Analysis::follow(Path path) {
  while (true) {
    if (!spend(1 + path.region.size() / 64)) {
      give_up("is too involved to be read as rules");
      return;
    }
    if (take_step(path) == Next::stop) {
      return;
    }
    if (path.at >= code_.size()) {
      give_up("runs past its end");
      return;
    }
    if (is_target_[path.at]) {
      wait(std::move(path));
      return;
    }
  }
}

Analysis::Next Analysis::take_step(Path& path) {
  const Instruction& at = code_[path.at];
  return has_valid_registers(at) ? execute(*this, path, at) : give_up("names a register that does not exist");
}

Analysis::Next Analysis::split(Path& path, const Cut& cut) {
  if (++cuts_ > kMostCuts) {
    return give_up("tells devices apart too finely to be read as rules");
  }
  spend(weight_of(path));
  Path above = path;
  above.region = path.region.extract(cut.field, {cut.at, device::kLastNumber});
  wait_here(std::move(above));
  wait_here(std::move(path));
  return Next::stop;
}

Analysis::Next Analysis::split(Path& path, const CutAccess& cut) {
  spend(weight_of(path));
  const PerAccess table = symbols_.table(cut.table);
  AccessMask left = path.accesses;
  while (left != 0) {
    const std::uint64_t value = table[unsigned(std::countr_zero(left))];
    Path part = path;
    part.accesses = 0;
    for (unsigned i = 0; i < kAccessValues; ++i) {
      if ((left >> i & 1U) != 0 && table[i] == value) {
        part.accesses = AccessMask(part.accesses | 1U << i);
      }
    }
    left = AccessMask(left & ~part.accesses);
    wait_here(std::move(part));
  }
  return Next::stop;
}

Analysis::Next Analysis::set(Path& path, unsigned number, const Computed& computed, std::size_t steps) {
  if (const Cut* cut = std::get_if<Cut>(&computed)) {
    return split(path, *cut);
  }
  if (const CutAccess* cut = std::get_if<CutAccess>(&computed)) {
    return split(path, *cut);
  }
  path.registers[number] = std::get<Value>(computed);
  return advance(path, steps);
}

Analysis::Next Analysis::advance(Path& path, std::size_t steps) {
  path.at += steps;
  return Next::go_on;
}

Analysis::Next Analysis::give_up(std::string why) {
  opaque_ = Opaque{std::move(why)};
  return Next::stop;
}

bool Analysis::spend(std::size_t work) {
  work_ += work;
  return work_ <= kMostWork;
}

Readable<device::Table> Analysis::conclude() {
  if (is_too_large(allowed_) || (unclear_ && is_too_large(denied_))) {
    return std::unexpected(Opaque{"tells devices apart too finely to be read as rules"});
  }
  device::Table allowed = device::Table::of_boxes(allowed_);
  // Where a comparison was unclear both branches were followed; that is fine as long as they end the same.
  if (unclear_ && !(allowed & device::Table::of_boxes(denied_)).allows_nothing()) {
    return std::unexpected(Opaque{depends_on(*unclear_)});
  }
  return allowed;
}

std::string Analysis::depends_on(std::size_t reason) const {
  return uses_map_ ? "the verdict depends on a map" : symbols_.reason(reason);
}

}  // namespace hf::bpf
