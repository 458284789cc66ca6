#include "core/bpf/analyse.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/bpf/call.h"
#include "core/bpf/evaluate.h"
#include "core/bpf/liveness.h"
#include "core/bpf/region.h"
#include "core/bpf/symbolic.h"

// The code is run for all requests at once. A path carries the set of access values and the region of devices that take
// it; a comparison splits them. Paths that meet at an instruction with the same registers (those that are still read)
// continue as one, which keeps a list of 200 rules from becoming 200 × 200 steps: the instruction with the lowest
// address goes first, so that all paths to a meeting point have arrived when it is left. At each exit the devices and
// accesses of the path are noted under its verdict.

namespace hf::bpf {
namespace {

using Tag = Value::Tag;

constexpr std::size_t kMostWork = 8'000'000;  // instructions and rectangles touched; a real filter needs thousands
constexpr std::size_t kMostCuts = 1024;       // of functions of a device number; comparisons with a plain one need none
constexpr std::size_t kMostFrames = 8;
constexpr std::int64_t kStackBytes = 512;
constexpr unsigned kRegisters = 12;
constexpr AccessMask kAllAccesses = (1U << kAccessValues) - 1;
constexpr unsigned kCombinations = 7;

struct Slot {
  std::int64_t offset = 0;
  unsigned bytes = 0;
  Value value;

  friend bool operator==(const Slot&, const Slot&) = default;
};

struct Frame {
  std::size_t return_to = 0;
  std::array<Value, 4> saved;  // r6 to r9 of the caller
  std::vector<Slot> slots;     // by offset, disjoint; bytes outside were never written, or hold something unknown

  friend bool operator==(const Frame&, const Frame&) = default;
};

struct Path {
  std::size_t at = 0;
  AccessMask accesses = kAllAccesses;
  std::array<Value, kRegisters> registers;
  std::vector<Frame> frames;
  bool is_refused = false;  // the error that the kernel would return now: none, or EPERM
  Region region;

  [[nodiscard]] Scope scope() const { return {region, accesses}; }
  [[nodiscard]] bool continues_like(const Path& other) const {
    return accesses == other.accesses && is_refused == other.is_refused && registers == other.registers &&
           frames == other.frames;
  }
};

// By index of the access field: block devices first.
device::Kind kind_at(unsigned index) { return index < kCombinations ? device::Kind::block : device::Kind::character; }
unsigned combination_at(unsigned index) { return index % kCombinations + 1; }

AccessMask accesses_of(device::Kind kind, device::AccessSet set) {
  unsigned mask = 0;
  for (unsigned i = 0; i < kAccessValues; ++i) {
    mask |= kind_at(i) == kind && set.allows(device::Access(combination_at(i))) ? 1U << i : 0U;
  }
  return AccessMask(mask);
}

class Analysis {
 public:
  Analysis(const Code& code, const CallNames& names)
      : code_(code), names_(names), live_(live_registers(code)), waiting_(code.size()), is_target_(code.size()) {
    for (std::size_t i = 0; i < code.size(); ++i) {
      const bool jumps = is_own_call(code[i]) || (is_jump_class(code[i]) && !is_call(code[i]) && !is_exit(code[i]));
      if (jumps) {
        is_target_[std::size_t(target_of(code[i], i))] = true;
      }
    }
  }

  // The analysis starts with one path for each region of requests.
  struct Start {
    Region region;
    AccessMask accesses;
  };

  Readable<device::Table> run(std::vector<Start> starts, Verdict before = Verdict::allow) {
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

 private:
  // Whether the path continues with its next instruction right away; if not, it has ended, waits, or was split.
  enum class Next : std::uint8_t { go_on, stop };

  Next give_up(std::string why) {
    opaque_ = Opaque{std::move(why)};
    return Next::stop;
  }

  // What it costs to keep or to copy a path.
  static std::size_t weight_of(const Path& path) {
    std::size_t weight = 16 + path.region.size();
    for (const Frame& frame : path.frames) {
      weight += 4 + 4 * frame.slots.size();
    }
    return weight;
  }

  bool spend(std::size_t work) {
    work_ += work;
    return work_ <= kMostWork;
  }

  void wait(Path path) {
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

  void follow(Path path) {
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

  Next take_step(Path& path) {
    const Instruction& at = code_[path.at];
    if (at.dst_reg >= kRegisters || at.src_reg >= kRegisters) {
      return give_up("names a register that does not exist");
    }
    switch (class_of(at)) {
      case BPF_ALU:
      case BPF_ALU64: return arithmetic(path, at);
      case BPF_JMP:
      case BPF_JMP32: return jump(path, at);
      case BPF_LDX: return load(path, at);
      case BPF_ST:
      case BPF_STX: return store(path, at);
      default: return load_wide(path, at);
    }
  }

  static Next advance(Path& path, std::size_t steps = 1) {
    path.at += steps;
    return Next::go_on;
  }

  // The instruction is executed again on both sides of the cut.
  Next split(Path& path, const Cut& cut) {
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

  Next split(Path& path, const CutAccess& cut) {
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

  // Like wait, but in the middle of an instruction: it clears no register and merges no paths, so that the parts stay
  // apart.
  void wait_here(Path path) {
    if (!path.region.empty() && path.accesses != 0) {
      next_ = std::min(next_, path.at);
      waiting_[path.at].push_back(std::move(path));
    }
  }

  Next set(Path& path, unsigned number, const Computed& computed, std::size_t steps = 1) {
    if (const Cut* cut = std::get_if<Cut>(&computed)) {
      return split(path, *cut);
    }
    if (const CutAccess* cut = std::get_if<CutAccess>(&computed)) {
      return split(path, *cut);
    }
    path.registers[number] = std::get<Value>(computed);
    return advance(path, steps);
  }

  Next arithmetic(Path& path, const Instruction& at) {
    const unsigned operation = operation_of(at);
    const bool by_register = BPF_SRC(at.code) == BPF_X && operation != BPF_NEG && operation != BPF_END;
    const Value dst = path.registers[at.dst_reg];
    const Value src = by_register ? path.registers[at.src_reg] : Symbols::number(immediate(at));
    if (operation == BPF_XOR && by_register && at.dst_reg == at.src_reg) {
      return set(path, at.dst_reg, Symbols::number(0));  // how constant blinding writes "r = 0"
    }
    if (src.tag == Tag::unset || (dst.tag == Tag::unset && operation != BPF_MOV)) {
      return give_up("uses a register before setting it");
    }
    if (operation == BPF_MOV && (src.is_address() || src.is_unknown() || !compute(at, 0, 1))) {
      const bool whole = class_of(at) == BPF_ALU64 && at.off == 0;
      return set(path, at.dst_reg, whole ? src : outside());
    }
    if (operation != BPF_MOV && (dst.is_address() || src.is_address())) {
      return move_address(path, at, src);
    }
    if (!compute(at, 0, 1)) {
      return give_up("has an unknown arithmetic instruction");
    }
    return set(path, at.dst_reg, symbols_.compute(at, dst, src, path.scope()));
  }

  Next move_address(Path& path, const Instruction& at, const Value& src) {
    const Value dst = symbols_.simplify(path.registers[at.dst_reg], path.scope());
    const Value by = symbols_.simplify(src, path.scope());
    const bool adds = operation_of(at) == BPF_ADD;
    if (class_of(at) != BPF_ALU64 || (!adds && operation_of(at) != BPF_SUB)) {
      return give_up("computes with an address");
    }
    if (dst.is_address() && by.tag == Tag::number) {
      return set(path, at.dst_reg, Value{dst.tag, dst.frame, adds ? dst.bits + by.bits : dst.bits - by.bits});
    }
    if (adds && by.is_address() && dst.tag == Tag::number) {
      return set(path, at.dst_reg, Value{by.tag, by.frame, by.bits + dst.bits});
    }
    return give_up("computes with an address");
  }

  Next jump(Path& path, const Instruction& at) {
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

  Next branch(Path& path, const Instruction& at, std::size_t target) {
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

  Next branch_on(Path& path, std::size_t target, AccessMask taken) {
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

  Next branch_on(Path& path, std::size_t target, const Where& where) {
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

  Next leave(Path& path) {
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

  // The result is computed from a device number: 0 for some devices, 1 for others.
  Next leave_by_device(Path& path, const Value& result) {
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

  Next record(const Path& path, std::uint64_t result) {
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

  // Counts the segments that the table of these boxes could have: boxes with many majors and others with many minors
  // multiply.
  static bool is_too_large(const std::vector<device::Box>& boxes) {
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

  Readable<device::Table> conclude() {
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

  [[nodiscard]] std::string depends_on(std::size_t reason) const {
    return uses_map_ ? "the verdict depends on a map" : symbols_.reason(reason);
  }

  Value outside() { return symbols_.unknown("the verdict depends on something outside the program"); }

  Next enter(Path& path, const Instruction& at) {
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

  Next call(Path& path, const Instruction& at) {
    const Value& first = path.registers[1];
    const FirstArgument argument = first.tag == Tag::unset                       ? FirstArgument::nothing
                                   : first.is_address() || first.tag == Tag::map ? FirstArgument::address
                                                                                 : FirstArgument::number;
    const CallEffect effect = effect_of(at, argument, names_);
    if (effect.kind == CallEffect::Kind::unclear) {
      return give_up(effect.why);
    }
    Value result = outside();
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

  static void forget_stacks(Path& path) {
    for (Frame& frame : path.frames) {
      frame.slots.clear();
    }
  }

  Next load_wide(Path& path, const Instruction& at) {
    if (!is_wide_load(at)) {
      return give_up("has an unknown load");
    }
    if (at.src_reg == 0) {
      const std::uint64_t high = std::uint32_t(code_[path.at + 1].imm);
      return set(path, at.dst_reg, Symbols::number(high << 32U | std::uint32_t(at.imm)), 2);
    }
    if (at.src_reg == BPF_PSEUDO_FUNC) {
      return give_up("hands one of its functions to a helper");
    }
    uses_map_ = true;
    return set(path, at.dst_reg, Value{Tag::map, 0, outside().bits}, 2);
  }

  Next load(Path& path, const Instruction& at) {
    const bool extends = BPF_MODE(at.code) == kSignExtending;
    if (BPF_MODE(at.code) != BPF_MEM && !extends) {
      return give_up("has an unknown load");
    }
    const Value base = path.registers[at.src_reg];
    const auto offset = std::int64_t(base.bits + std::uint64_t(std::int64_t(at.off)));
    const unsigned bytes = bytes_of_access(at);
    Computed loaded = outside();
    switch (base.tag) {
      case Tag::context: {
        const std::optional<Value> field = read_context(offset, bytes);
        if (!field) {
          return give_up("reads beside the request");
        }
        loaded = *field;
        break;
      }
      case Tag::stack:
        if (base.frame >= path.frames.size() || offset < -kStackBytes || offset > -std::int64_t(bytes)) {
          return give_up("reads beside its stack");
        }
        loaded = read_stack(path, base.frame, offset, bytes);
        break;
      case Tag::unknown:
      case Tag::map: break;
      default: return give_up("reads through something that is no address");
    }
    if (extends) {
      if (const Value* value = std::get_if<Value>(&loaded)) {
        loaded = value->is_address() ? outside() : extended(path, *value, bytes);
      }
    }
    return set(path, at.dst_reg, loaded);
  }

  Computed extended(const Path& path, const Value& value, unsigned bytes) {
    const Value simple = symbols_.simplify(value, path.scope());
    if (simple.tag == Tag::access) {
      return CutAccess{simple.bits};
    }
    return symbols_.sign_extend(simple, bytes * 8, path.scope());
  }

  // Kernel: the three 32-bit fields of the request; only the first may be read in parts (cgroup_dev_is_valid_access).
  std::optional<Value> read_context(std::int64_t offset, unsigned bytes) {
    if (bytes > 4 || offset < 0 || offset > 12 - std::int64_t(bytes) || offset % bytes != 0 ||
        (offset >= 4 && bytes != 4)) {
      return std::nullopt;
    }
    if (offset >= 4) {
      return symbols_.field(offset == 4 ? Field::major : Field::minor);
    }
    PerAccess table{};
    for (unsigned i = 0; i < kAccessValues; ++i) {
      const std::uint64_t field = std::uint64_t(kind_at(i)) | std::uint64_t(combination_at(i)) << 16U;
      table[i] = truncate(field >> (8 * offset), 8 * bytes);
    }
    return symbols_.per_access(table);
  }

  Computed read_stack(const Path& path, std::size_t frame, std::int64_t offset, unsigned bytes) {
    std::uint64_t bits = 0;
    unsigned known = 0;
    for (const Slot& slot : path.frames[frame].slots) {
      if (slot.offset == offset && slot.bytes == bytes) {
        return slot.value;
      }
      if (slot.offset + slot.bytes <= offset || offset + bytes <= slot.offset) {
        continue;
      }
      if (slot.value.tag == Tag::number) {
        for (unsigned i = 0; i < slot.bytes; ++i) {
          const std::int64_t place = slot.offset + i - offset;
          if (place >= 0 && place < bytes) {
            bits |= (slot.value.bits >> (8 * i) & 0xffU) << (8 * place);
            ++known;
          }
        }
        continue;
      }
      if (slot.value.is_address() || slot.offset > offset || slot.offset + slot.bytes < offset + bytes) {
        return outside();
      }
      return part_of(path, slot.value, 8 * unsigned(offset - slot.offset), 8 * bytes);
    }
    return known == bytes ? Symbols::number(bits) : outside();
  }

  Computed part_of(const Path& path, const Value& value, unsigned from, unsigned bits) {
    const Computed shifted = symbols_.shift_right(value, from, path.scope());
    const Value* whole = std::get_if<Value>(&shifted);
    return whole != nullptr ? symbols_.truncate(*whole, bits, path.scope()) : shifted;
  }

  Next store(Path& path, const Instruction& at) {
    if (BPF_MODE(at.code) != BPF_MEM) {
      return give_up("has an atomic instruction");
    }
    const Value base = path.registers[at.dst_reg];
    const unsigned bytes = bytes_of_access(at);
    Value value = class_of(at) == BPF_ST ? Symbols::number(immediate(at)) : path.registers[at.src_reg];
    if (value.tag == Tag::unset) {
      return give_up("uses a register before setting it");
    }
    if (base.is_unknown()) {
      forget_stacks(path);  // mostly a map's memory, but it may be the program's own stack
      return advance(path);
    }
    if (base.tag != Tag::stack) {
      return give_up("writes through something that is no address of its own");
    }
    const auto offset = std::int64_t(base.bits + std::uint64_t(std::int64_t(at.off)));
    if (base.frame >= path.frames.size() || offset < -kStackBytes || offset > -std::int64_t(bytes)) {
      return give_up("writes beside its stack");
    }
    if (bytes < 8) {
      const Computed stored =
          value.is_address() ? Computed(outside()) : symbols_.truncate(value, 8 * bytes, path.scope());
      if (const Cut* cut = std::get_if<Cut>(&stored)) {
        return split(path, *cut);
      }
      if (const CutAccess* cut = std::get_if<CutAccess>(&stored)) {
        return split(path, *cut);
      }
      value = std::get<Value>(stored);
    }
    spend(path.frames[base.frame].slots.size());
    write_stack(path.frames[base.frame].slots, {offset, bytes, value});
    return advance(path);
  }

  static void write_stack(std::vector<Slot>& slots, const Slot& written) {
    std::vector<Slot> kept;
    for (const Slot& slot : slots) {
      if (slot.offset + slot.bytes <= written.offset || written.offset + written.bytes <= slot.offset) {
        kept.push_back(slot);
        continue;
      }
      for (unsigned i = 0; i < slot.bytes && slot.value.tag == Tag::number; ++i) {
        const std::int64_t place = slot.offset + i;
        if (place < written.offset || place >= written.offset + written.bytes) {
          kept.push_back({place, 1, Symbols::number(slot.value.bits >> (8 * i) & 0xffU)});
        }
      }
    }
    kept.push_back(written);
    std::ranges::sort(kept, {}, &Slot::offset);
    slots = std::move(kept);
  }

  const Code& code_;
  const CallNames& names_;
  std::vector<RegisterMask> live_;
  std::vector<std::vector<Path>> waiting_;
  std::vector<bool> is_target_;
  Symbols symbols_;
  std::vector<device::Box> allowed_;
  std::vector<device::Box> denied_;
  std::optional<std::size_t> unclear_;
  std::optional<Opaque> opaque_;
  std::size_t next_ = 0;
  std::size_t work_ = 0;
  std::size_t cuts_ = 0;
  bool uses_map_ = false;
};

}  // namespace

Readable<device::Table> analyse(const Code& code, const CallNames& names) {
  if (const Result<void> shape = check_shape(code); !shape) {
    return std::unexpected(Opaque{shape.error().message});
  }
  return Analysis(code, names).run({{Region::everything(), kAllAccesses}});
}

Readable<device::Table> analyse_overrides(const Code& code, const CallNames& names) {
  if (!may_override(code, names)) {
    return device::Table();
  }
  if (const Result<void> shape = check_shape(code); !shape) {
    return std::unexpected(Opaque{shape.error().message});
  }
  return Analysis(code, names).run({{Region::everything(), kAllAccesses}}, Verdict::deny);
}

Readable<device::Table> analyse_within(const Code& code, const device::Table& requests) {
  if (const Result<void> shape = check_shape(code); !shape) {
    return std::unexpected(Opaque{shape.error().message});
  }
  std::vector<Analysis::Start> starts;
  for (const device::Kind kind : device::kKinds) {
    const device::Plane& plane = requests.plane(kind);
    for (std::size_t band = 0; band < plane.size(); ++band) {
      const device::Row& row = plane[band].row;
      for (std::size_t segment = 0; segment < row.size(); ++segment) {
        Region region = Region::everything();
        region = region.extract(Field::major, {plane[band].first, device::last_of(plane, band)});
        region = region.extract(Field::minor, {row[segment].first, device::last_of(row, segment)});
        starts.push_back({std::move(region), accesses_of(kind, row[segment].allowed)});
      }
    }
  }
  const CallNames no_names;
  return Analysis(code, no_names).run(std::move(starts));
}

}  // namespace hf::bpf
