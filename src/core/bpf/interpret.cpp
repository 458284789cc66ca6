#include "core/bpf/interpret.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/bpf/call.h"
#include "core/bpf/cell.h"
#include "core/bpf/evaluate.h"

namespace hf::bpf {
namespace {

// Kernel: what the verifier lets through ends within a million instructions on every path.
constexpr std::size_t kMostSteps = 4'000'000;
constexpr std::size_t kMostPaths = 65'536;

struct Frame {
  std::size_t return_to = 0;
  std::array<Cell, 4> saved;  // r6 to r9 of the caller
  Stack stack;
};

struct Path {
  std::size_t at = 0;
  std::array<Cell, kRegisters> registers;
  std::vector<Frame> frames;
  bool is_refused = false;  // the error that the kernel would return now: none, or EPERM
};

class Run {
 public:
  Run(const Code& code, const device::Request& request, const CallNames& names, Verdict before)
      : code_(code),
        names_(names),
        before_(before),
        context_{std::uint32_t(request.device.kind) | std::uint32_t(request.access) << 16U, request.device.major,
                 request.device.minor} {}

  Readable<Verdict> run() {
    Path start;
    start.frames.emplace_back();
    start.registers[1] = {Cell::Tag::context, 0, 0};
    start.registers[10] = {Cell::Tag::stack, 0, 0};
    start.is_refused = before_ == Verdict::deny;
    paths_.push_back(std::move(start));
    std::optional<Verdict> verdict;
    while (!paths_.empty()) {
      Path path = std::move(paths_.back());
      paths_.pop_back();
      const Readable<Verdict> end = follow(path);
      if (!end) {
        return end;
      }
      if (verdict && *verdict != *end) {
        return std::unexpected(Opaque{depends_on()});
      }
      verdict = *end;
    }
    return *verdict;
  }

 private:
  template <class AnyRun, class AnyPath>
  friend auto bpf::execute(AnyRun& run, AnyPath& path, const Instruction& at);

  using Step = Readable<std::optional<Verdict>>;  // nullopt: continue

  static std::unexpected<Opaque> opaque(std::string why) { return std::unexpected(Opaque{std::move(why)}); }

  [[nodiscard]] std::string depends_on() const {
    return uses_map_ ? "the verdict depends on a map" : "the verdict depends on something outside the program";
  }

  Readable<Verdict> follow(Path& path) {
    while (true) {
      if (++steps_ > kMostSteps) {
        return opaque("runs for too long");
      }
      if (path.at >= code_.size()) {
        return opaque("runs past its end");
      }
      const Step step = take_step(path);
      if (!step) {
        return std::unexpected(step.error());
      }
      if (*step) {
        return **step;
      }
    }
  }

  Step take_step(Path& path) {
    const Instruction& at = code_[path.at];
    return has_valid_registers(at) ? execute(*this, path, at) : opaque("names a register that does not exist");
  }

  static Step next(Path& path, std::size_t steps = 1) {
    path.at += steps;
    return std::nullopt;
  }

  static Step arithmetic(Path& path, const Instruction& at) {
    Cell& dst = path.registers[at.dst_reg];
    const bool unary = operation_of(at) == BPF_NEG || operation_of(at) == BPF_END;
    const bool by_register = BPF_SRC(at.code) == BPF_X && !unary;
    const Cell src = by_register ? path.registers[at.src_reg] : number(immediate(at));
    const bool clears = operation_of(at) == BPF_XOR && by_register && at.dst_reg == at.src_reg;
    if (clears) {
      dst = number(0);  // how constant blinding writes "r = 0", also of a register never set
      return next(path);
    }
    const Readable<Cell> computed = compute(at, dst, src);
    if (!computed) {
      return std::unexpected(computed.error());
    }
    dst = *computed;
    return next(path);
  }

  Step jump(Path& path, const Instruction& at) {
    if (is_exit(at)) {
      return leave(path);
    }
    if (is_own_call(at)) {
      return enter(path, at);
    }
    if (is_call(at)) {
      return call(path, at);
    }
    const std::int64_t target = target_of(at, path.at);
    if (target < 0 || target >= std::int64_t(code_.size())) {
      return opaque("jumps out of the program");
    }
    if (is_always_jump(at)) {
      path.at = std::size_t(target);
      return std::nullopt;
    }
    return branch(path, at, std::size_t(target));
  }

  Step branch(Path& path, const Instruction& at, std::size_t target) {
    const Cell& dst = path.registers[at.dst_reg];
    const Cell src = BPF_SRC(at.code) == BPF_X ? path.registers[at.src_reg] : number(immediate(at));
    if (dst.tag == Cell::Tag::unset || src.tag == Cell::Tag::unset) {
      return opaque("uses a register before setting it");
    }
    if (!holds(at, 0, 0)) {
      return opaque("has an unknown jump");
    }
    if (dst.is_address() || src.is_address()) {
      return opaque("compares addresses");
    }
    if (dst.tag == Cell::Tag::number && src.tag == Cell::Tag::number) {
      path.at = *holds(at, dst.bits, src.bits) ? target : path.at + 1;
      return std::nullopt;
    }
    if (++forks_ > kMostPaths) {
      return opaque(depends_on());
    }
    paths_.push_back(path);
    paths_.back().at = target;
    return next(path);
  }

  Step leave(Path& path) {
    const Cell result = path.registers[0];
    if (path.frames.size() > 1) {
      const Frame& frame = path.frames.back();
      std::ranges::copy(frame.saved, path.registers.begin() + 6);
      path.at = frame.return_to;
      path.frames.pop_back();
      path.registers[10] = {Cell::Tag::stack, 0, path.frames.size() - 1};
      std::fill_n(path.registers.begin() + 1, 5, Cell());
      if (result.tag == Cell::Tag::stack) {
        return opaque("returns an address of its stack");
      }
      return std::nullopt;
    }
    if (result.tag == Cell::Tag::unknown) {
      return opaque(depends_on());
    }
    // Kernel: programs of this type may return 0 and 1 only (check_return_code).
    if (result.tag != Cell::Tag::number || result.bits > 1) {
      return opaque("returns something else than 0 or 1");
    }
    return std::optional(result.bits == 1 && !path.is_refused ? Verdict::allow : Verdict::deny);
  }

  Step enter(Path& path, const Instruction& at) {
    if (path.frames.size() == kMostFrames) {
      return opaque("calls too deep");
    }
    Frame frame;
    frame.return_to = path.at + 1;
    std::copy_n(path.registers.begin() + 6, frame.saved.size(), frame.saved.begin());
    path.frames.push_back(std::move(frame));
    path.registers[0] = Cell();
    for (unsigned saved = 6; saved < kRegisters; ++saved) {
      path.registers[saved] = Cell();
    }
    path.registers[10] = {Cell::Tag::stack, 0, path.frames.size() - 1};
    const std::int64_t target = target_of(at, path.at);
    if (target < 0 || target >= std::int64_t(code_.size())) {
      return opaque("calls out of the program");
    }
    path.at = std::size_t(target);
    return std::nullopt;
  }

  Step call(Path& path, const Instruction& at) {
    const Cell& first = path.registers[1];
    const bool address = first.is_address() || (first.tag == Cell::Tag::unknown && first.bits == 1);
    const FirstArgument argument = first.tag == Cell::Tag::unset ? FirstArgument::nothing
                                   : address                     ? FirstArgument::address
                                                                 : FirstArgument::number;
    const CallEffect effect = effect_of(at, argument, names_);
    if (effect.kind == CallEffect::Kind::unclear) {
      return opaque(effect.why);
    }
    Cell result = unknown();
    if (effect.kind == CallEffect::Kind::reads_error) {
      result = number(path.is_refused ? std::uint64_t(std::int64_t(kRefused)) : 0);
    } else if (effect.kind == CallEffect::Kind::sets_error) {
      const auto error = std::int32_t(std::uint32_t(first.bits));
      if (first.tag != Cell::Tag::number || (error != 0 && error != kRefused)) {
        return opaque("sets an error that is not EPERM (bpf_set_retval)");
      }
      path.is_refused = error != 0;
      result = number(0);
    }
    for (unsigned argument_register = 1; argument_register <= 5; ++argument_register) {
      forget_memory_behind(path, path.registers[argument_register]);
      path.registers[argument_register] = Cell();
    }
    path.registers[0] = result;
    return next(path);
  }

  // A helper may write wherever an argument points.
  static void forget_memory_behind(Path& path, const Cell& argument) {
    if (argument.tag == Cell::Tag::stack) {
      forget_stacks(path);
    }
  }

  static void forget_stacks(Path& path) {
    for (Frame& frame : path.frames) {
      frame.stack = Stack();
    }
  }

  Step load_wide(Path& path, const Instruction& at) {
    if (!is_wide_load(at) || path.at + 1 >= code_.size()) {
      return opaque("has an unknown load");
    }
    if (at.src_reg == 0) {
      const std::uint64_t high = std::uint32_t(code_[path.at + 1].imm);
      path.registers[at.dst_reg] = number(high << 32U | std::uint32_t(at.imm));
      return next(path, 2);
    }
    if (at.src_reg == BPF_PSEUDO_FUNC) {
      return opaque("hands one of its functions to a helper");
    }
    uses_map_ = true;
    path.registers[at.dst_reg] = unknown_address();
    return next(path, 2);
  }

  Step load(Path& path, const Instruction& at) {
    const bool extends = BPF_MODE(at.code) == kSignExtending;
    if (BPF_MODE(at.code) != BPF_MEM && !extends) {
      return opaque("has an unknown load");
    }
    const Cell base = path.registers[at.src_reg];
    const auto offset = std::int64_t(base.bits + std::uint64_t(std::int64_t(at.off)));
    const unsigned bytes = bytes_of_access(at);
    Cell loaded = unknown();
    switch (base.tag) {
      case Cell::Tag::context: {
        const std::optional<std::uint64_t> field = read_context(offset, bytes);
        if (!field) {
          return opaque("reads beside the request");
        }
        loaded = number(*field);
        break;
      }
      case Cell::Tag::stack:
        if (base.frame >= path.frames.size() || offset < -kStackBytes || offset > -std::int64_t(bytes)) {
          return opaque("reads beside its stack");
        }
        loaded = read_stack(path.frames[base.frame].stack, offset, bytes);
        break;
      case Cell::Tag::unknown: break;
      default: return opaque("reads through something that is no address");
    }
    if (extends && loaded.tag == Cell::Tag::number) {
      loaded = number(sign_extend(loaded.bits, bytes * 8));
    }
    path.registers[at.dst_reg] = extends && loaded.is_address() ? unknown() : loaded;
    return next(path);
  }

  // Kernel: the three 32-bit fields of the request; only the first may be read in parts (cgroup_dev_is_valid_access).
  [[nodiscard]] std::optional<std::uint64_t> read_context(std::int64_t offset, unsigned bytes) const {
    if (bytes > 4 || offset < 0 || offset > 12 - std::int64_t(bytes) || offset % bytes != 0 ||
        (offset >= 4 && bytes != 4)) {
      return std::nullopt;
    }
    const std::uint32_t field = context_[std::size_t(offset / 4)];
    return truncate(field >> (8 * (offset % 4)), 8 * bytes);
  }

  static Step store(Path& path, const Instruction& at) {
    if (BPF_MODE(at.code) != BPF_MEM) {
      return opaque("has an atomic instruction");
    }
    const Cell value = class_of(at) == BPF_ST ? number(immediate(at)) : path.registers[at.src_reg];
    const Cell& base = path.registers[at.dst_reg];
    if (value.tag == Cell::Tag::unset) {
      return opaque("uses a register before setting it");
    }
    if (base.tag == Cell::Tag::unknown) {
      forget_stacks(path);  // mostly a map's memory, but it may be the program's own stack
      return next(path);
    }
    if (base.tag != Cell::Tag::stack) {
      return opaque("writes through something that is no address of its own");
    }
    const auto offset = std::int64_t(base.bits + std::uint64_t(std::int64_t(at.off)));
    const unsigned bytes = bytes_of_access(at);
    if (base.frame >= path.frames.size() || offset < -kStackBytes || offset > -std::int64_t(bytes)) {
      return opaque("writes beside its stack");
    }
    write_stack(path.frames[base.frame].stack, offset, bytes, value);
    return next(path);
  }

  const Code& code_;
  const CallNames& names_;
  Verdict before_;
  std::array<std::uint32_t, 3> context_;
  std::vector<Path> paths_;
  std::size_t steps_ = 0;
  std::size_t forks_ = 0;
  bool uses_map_ = false;
};

}  // namespace

Readable<Verdict> interpret(const Code& code, const device::Request& request, const CallNames& names, Verdict before) {
  return Run(code, request, names, before).run();
}

}  // namespace hf::bpf
