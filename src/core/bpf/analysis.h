// Analysis: one run of a program for all requests at once, which finds the table of what it lets through.
//
// A path carries the set of access values and the region of devices that take it; a comparison splits them. Paths that
// meet at an instruction with the same registers (those that are still read) continue as one, which keeps a list of 200
// rules from becoming 200 × 200 steps: the instruction with the lowest address goes first, so that all paths to a
// meeting point have arrived when it is left. At each exit the devices and accesses of the path are noted under its
// verdict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/bpf/instruction.h"
#include "core/bpf/liveness.h"
#include "core/bpf/path.h"
#include "core/bpf/symbolic.h"
#include "core/device/table.h"

namespace hf::bpf {

class Analysis {
 public:
  Analysis(const Code& code, const CallNames& names);  // of code that check_shape has accepted

  // The analysis starts with one path for each region of requests.
  struct Start {
    Region region;
    AccessMask accesses;
  };

  Readable<device::Table> run(std::vector<Start> starts, Verdict before = Verdict::allow);

 private:
  template <class Run, class Step>
  friend auto bpf::execute(Run& run, Step& path, const Instruction& at);

  // Whether the path continues with its next instruction right away; if not, it has ended, waits, or was split.
  enum class Next : std::uint8_t { go_on, stop };

  // The order of paths (analysis.cpp).
  void wait(Path path);
  // Like wait, but in the middle of an instruction: it clears no register and merges no paths, so that the parts stay
  // apart.
  void wait_here(Path path);
  void follow(Path path);
  Next take_step(Path& path);
  // The instruction is executed again on both sides of the cut.
  Next split(Path& path, const Cut& cut);
  Next split(Path& path, const CutAccess& cut);
  Next set(Path& path, unsigned number, const Computed& computed, std::size_t steps = 1);
  static Next advance(Path& path, std::size_t steps = 1);
  Next give_up(std::string why);
  bool spend(std::size_t work);
  Readable<device::Table> conclude();
  [[nodiscard]] std::string depends_on(std::size_t reason) const;

  // Arithmetic and memory (analysis_values.cpp).
  Next arithmetic(Path& path, const Instruction& at);
  Next move_address(Path& path, const Instruction& at, const Value& src);
  Next load_wide(Path& path, const Instruction& at);
  Next load(Path& path, const Instruction& at);
  Computed extended(const Path& path, const Value& value, unsigned bytes);
  std::optional<Value> read_context(std::int64_t offset, unsigned bytes);
  Next store(Path& path, const Instruction& at);

  // Jumps, calls and exits (analysis_jumps.cpp).
  Next jump(Path& path, const Instruction& at);
  Next branch(Path& path, const Instruction& at, std::size_t target);
  Next branch_on(Path& path, std::size_t target, AccessMask taken);
  Next branch_on(Path& path, std::size_t target, const Where& where);
  Next enter(Path& path, const Instruction& at);
  Next call(Path& path, const Instruction& at);
  Next leave(Path& path);
  // The result is computed from a device number: 0 for some devices, 1 for others.
  Next leave_by_device(Path& path, const Value& result);
  Next record(const Path& path, std::uint64_t result);

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

}  // namespace hf::bpf
