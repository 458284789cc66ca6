// Analysis of jumps, calls and exits: where a path goes on, and the verdict in which it ends.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>

#include "core/bpf/analysis.h"
#include "core/bpf/call.h"
#include "core/bpf/evaluate.h"

namespace hf::bpf {
namespace {

using Tag = Value::Tag;

}  // namespace

Analysis::Next Analysis::jump(Path& path, const Instruction& at) {
  if (is_exit(at)) {
    return leave(path);
  }
  if (is_own_call(at)) {
    return enter(path, at);
  }
  if (is_call(at)) {
    return call(path, at);
  }
  const auto target = std::size_t(target_of(at, path.at));
  if (is_always_jump(at)) {
    path.at = target;
    return Next::go_on;
  }
  return branch(path, at, target);
}

Analysis::Next Analysis::branch(Path& path, const Instruction& at, std::size_t target) {
  const Value dst = path.registers[at.dst_reg];
  const Value src = BPF_SRC(at.code) == BPF_X ? path.registers[at.src_reg] : Symbols::number(immediate(at));
  if (dst.tag == Tag::unset || src.tag == Tag::unset) {
    return give_up("uses a register before setting it");
  }
  if (!holds(at, 0, 0)) {
    return give_up("has an unknown jump");
  }
  if (dst.is_address() || src.is_address()) {
    return give_up("compares addresses");
  }
  const Compared compared = symbols_.compare(at, dst, src, path.scope());
  if (const bool* taken = std::get_if<bool>(&compared)) {
    path.at = *taken ? target : path.at + 1;
    return Next::go_on;
  }
  if (const AccessMask* taken = std::get_if<AccessMask>(&compared)) {
    return branch_on(path, target, *taken);
  }
  if (const Where* where = std::get_if<Where>(&compared)) {
    return branch_on(path, target, *where);
  }
  if (const Unclear* unclear = std::get_if<Unclear>(&compared)) {
    unclear_ = unclear_ ? unclear_ : std::optional(unclear->reason);
    spend(weight_of(path));
    Path other = path;
    other.at = target;
    wait(std::move(other));
    return advance(path);
  }
  const Cut* cut = std::get_if<Cut>(&compared);
  return cut != nullptr ? split(path, *cut) : split(path, std::get<CutAccess>(compared));
}

Analysis::Next Analysis::branch_on(Path& path, std::size_t target, AccessMask taken) {
  if (taken == 0 || taken == path.accesses) {
    path.at = taken == 0 ? path.at + 1 : target;
    return Next::go_on;
  }
  spend(weight_of(path));
  Path other = path;
  other.at = target;
  other.accesses = taken;
  wait(std::move(other));
  path.accesses = AccessMask(path.accesses & ~taken);
  return advance(path);
}

Analysis::Next Analysis::branch_on(Path& path, std::size_t target, const Where& where) {
  spend(path.region.size() / 16);
  Region inside = path.region.extract(where.field, where.span);
  if (inside.empty() || path.region.empty()) {
    const bool all_inside = path.region.empty();
    path.region.merge(std::move(inside));
    path.at = all_inside == where.inside ? target : path.at + 1;
    return Next::go_on;
  }
  if (!where.inside) {
    std::swap(inside, path.region);
  }
  Path other{target, path.accesses, path.registers, path.frames, path.is_refused, std::move(inside)};
  wait(std::move(other));
  return advance(path);
}

Analysis::Next Analysis::enter(Path& path, const Instruction& at) {
  if (path.frames.size() == kMostFrames) {
    return give_up("calls too deep");
  }
  Frame frame;
  frame.return_to = path.at + 1;
  std::copy_n(path.registers.begin() + 6, frame.saved.size(), frame.saved.begin());
  path.frames.push_back(std::move(frame));
  path.registers[0] = Value();
  std::fill(path.registers.begin() + 6, path.registers.end(), Value());
  path.registers[10] = {Tag::stack, std::uint32_t(path.frames.size() - 1), 0};
  path.at = std::size_t(target_of(at, path.at));
  return Next::go_on;
}

Analysis::Next Analysis::call(Path& path, const Instruction& at) {
  const Value& first = path.registers[1];
  const FirstArgument argument = first.tag == Tag::unset                       ? FirstArgument::nothing
                                 : first.is_address() || first.tag == Tag::map ? FirstArgument::address
                                                                               : FirstArgument::number;
  const CallEffect effect = effect_of(at, argument, names_);
  if (effect.kind == CallEffect::Kind::unclear) {
    return give_up(effect.why);
  }
  Value result = outside(symbols_);
  if (effect.kind == CallEffect::Kind::reads_error) {
    result = Symbols::number(path.is_refused ? std::uint64_t(std::int64_t(kRefused)) : 0);
  } else if (effect.kind == CallEffect::Kind::sets_error) {
    const Value error = symbols_.simplify(first, path.scope());
    if (error.tag == Tag::access) {
      return split(path, CutAccess{error.bits});
    }
    const auto number = std::int32_t(std::uint32_t(error.bits));
    if (error.tag != Tag::number || (number != 0 && number != kRefused)) {
      return give_up("sets an error that is not EPERM (bpf_set_retval)");
    }
    path.is_refused = number != 0;
    result = Symbols::number(0);
  }
  for (unsigned number = 1; number <= 5; ++number) {
    if (path.registers[number].tag == Tag::stack) {  // a helper may write wherever an argument points
      forget_stacks(path);
    }
    path.registers[number] = Value();
  }
  return set(path, 0, result);
}

Analysis::Next Analysis::leave(Path& path) {
  if (path.frames.size() > 1) {
    const Frame frame = std::move(path.frames.back());
    path.frames.pop_back();
    std::ranges::copy(frame.saved, path.registers.begin() + 6);
    path.registers[10] = {Tag::stack, std::uint32_t(path.frames.size() - 1), 0};
    path.at = frame.return_to;
    std::fill_n(path.registers.begin() + 1, 5, Value());
    if (path.registers[0].tag == Tag::stack) {
      return give_up("returns an address of its stack");
    }
    return Next::go_on;
  }
  const Value result = symbols_.simplify(path.registers[0], path.scope());
  switch (result.tag) {
    case Tag::number: return record(path, result.bits);
    case Tag::access: return split(path, CutAccess{result.bits});
    case Tag::function:
    case Tag::sum: return leave_by_device(path, result);
    case Tag::unknown:
    case Tag::map: return give_up(depends_on(result.bits));
    default: return give_up("returns something else than 0 or 1");
  }
}

Analysis::Next Analysis::leave_by_device(Path& path, const Value& result) {
  const Instruction is_zero{.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0};
  const Compared compared = symbols_.compare(is_zero, result, Symbols::number(0), path.scope());
  if (const Cut* cut = std::get_if<Cut>(&compared)) {
    return split(path, *cut);
  }
  const Where* where = std::get_if<Where>(&compared);
  if (where == nullptr) {
    return give_up("returns something else than 0 or 1");
  }
  Path other = path;
  other.region = path.region.extract(where->field, where->span);
  if (other.region.empty() || path.region.empty()) {
    return give_up("returns something else than 0 or 1");
  }
  wait_here(std::move(other));
  wait_here(std::move(path));
  return Next::stop;
}

Analysis::Next Analysis::record(const Path& path, std::uint64_t result) {
  // Kernel: programs of this type may return 0 and 1 only (check_return_code).
  if (result > 1) {
    return give_up("returns something else than 0 or 1");
  }
  spend(path.region.size());
  for (const device::Kind kind : device::kKinds) {
    unsigned bits = 0;
    for (unsigned i = 0; i < kAccessValues; ++i) {
      const bool here = kind_at(i) == kind && (path.accesses >> i & 1U) != 0;
      bits |= here ? 1U << combination_at(i) : 0U;
    }
    if (bits == 0) {
      continue;
    }
    std::vector<device::Box>& boxes = result == 1 && !path.is_refused ? allowed_ : denied_;
    for (const Rectangle& rectangle : path.region.rectangles()) {
      boxes.push_back({kind, rectangle.major, rectangle.minor, device::AccessSet::of_bits(bits)});
    }
  }
  return Next::stop;
}

}  // namespace hf::bpf
