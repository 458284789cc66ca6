#include "core/bpf/generate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/bpf/analyse.h"
#include "core/bpf/assembler.h"

// Layout of a filter:
//   r2 = kind, r3 = access, r4 = major, r5 = minor
//   a tree of comparisons over r4 for each kind, its leaves jumping to rows
//   a tree over r5 for each different row, its leaves jumping to ends
//   an end for each different set of accesses: r0 = (set >> access) & 1; exit
// All jumps go forward.

namespace hf::bpf {
namespace {

using device::AccessSet;
using device::Band;
using device::Kind;
using device::Plane;
using device::Row;
using device::Segment;
using device::Table;
using Label = Assembler::Label;

// The bits to shift by the access asked for. Bit 0 answers access(2) with F_OK, which asks for no access bit at all: as
// in cgroup v1 and every runtime, a device with any access exists.
std::int32_t end_bits(AccessSet allowed) { return allowed.bits() | (allowed.empty() ? 0 : 1); }

class Writer {
 public:
  // `otherwise`: where requests go that the table does not allow; absent: they are refused.
  // `verdict`: the result for a request that the table allows.
  Writer(Assembler& assembler, std::optional<Label> otherwise, std::int32_t verdict)
      : assembler_(assembler), otherwise_(otherwise), verdict_(verdict) {}

  void write(const Table& table) {
    if (is_uniform(table)) {
      assembler_.jump(end_of(table.plane(Kind::block).front().row.front().allowed));
    } else {
      write_planes(table);
    }
    write_rows();
    write_ends();
  }

  static void load_request(Assembler& assembler) {
    assembler.load_word(Register::r2, Register::r1, 0);
    assembler.load_word(Register::r3, Register::r1, 0);
    assembler.and_with(Register::r2, 0xffff);
    assembler.shift_right(Register::r3, 16);
    assembler.load_word(Register::r4, Register::r1, 4);
    assembler.load_word(Register::r5, Register::r1, 8);
  }

 private:
  static bool is_uniform(const Plane& plane) { return plane.size() == 1 && plane.front().row.size() == 1; }
  static bool is_uniform(const Table& table) {
    return table.plane(Kind::block) == table.plane(Kind::character) && is_uniform(table.plane(Kind::block));
  }

  void write_planes(const Table& table) {
    const Plane& block = table.plane(Kind::block);
    const Plane& character = table.plane(Kind::character);
    if (block == character) {
      write_plane(character);
      return;
    }
    const Label block_plane = assembler_.label();
    assembler_.jump_if(BPF_JEQ, Register::r2, std::uint32_t(Kind::block), block_plane);
    write_plane(character);
    assembler_.place(block_plane);
    write_plane(block);
  }

  void write_plane(const Plane& plane) {
    write_tree(std::span(plane), Register::r4, [this](const Band& band) { return row_of(band.row); });
  }

  // Writes a binary search. The ranges are sorted, and each reaches up to the next one's first number.
  template <class Range, class LeafOf>
  void write_tree(std::span<const Range> ranges, Register number, LeafOf leaf_of) {
    if (ranges.size() == 1) {
      assembler_.jump(leaf_of(ranges.front()));
      return;
    }
    const std::size_t middle = ranges.size() / 2;
    const bool upper_is_leaf = ranges.size() - middle == 1;
    const Label upper = upper_is_leaf ? leaf_of(ranges.back()) : assembler_.label();
    assembler_.jump_if(BPF_JGE, number, ranges[middle].first, upper);
    write_tree(ranges.first(middle), number, leaf_of);
    if (!upper_is_leaf) {
      assembler_.place(upper);
      write_tree(ranges.subspan(middle), number, leaf_of);
    }
  }

  Label row_of(const Row& row) {
    if (row.size() == 1) {
      return end_of(row.front().allowed);
    }
    for (const auto& [known, label] : rows_) {
      if (*known == row) {
        return label;
      }
    }
    rows_.emplace_back(&row, assembler_.label());
    return rows_.back().second;
  }

  Label end_of(AccessSet allowed) {
    if (allowed.empty() && otherwise_) {
      return *otherwise_;
    }
    const auto [end, is_new] = ends_.try_emplace(end_bits(allowed));
    if (is_new) {
      end->second = assembler_.label();
    }
    return end->second;
  }

  void write_rows() {
    for (const auto& [row, label] : rows_) {
      assembler_.place(label);
      write_tree(std::span<const Segment>(*row), Register::r5,
                 [this](const Segment& segment) { return end_of(segment.allowed); });
    }
  }

  void write_ends() {
    for (const auto& [bits, label] : ends_) {
      assembler_.place(label);
      if (otherwise_) {
        write_override_end(bits);
      } else {
        write_end(bits);
      }
    }
  }

  void write_end(std::int32_t bits) {
    const bool all = bits == end_bits(AccessSet::everything());
    assembler_.move(Register::r0, all ? 1 : bits);
    if (!all && bits != 0) {
      assembler_.and_with(Register::r3, 7);
      assembler_.shift_right(Register::r0, Register::r3);
      assembler_.and_with(Register::r0, 1);
    }
    assembler_.exit();
  }

  void write_override_end(std::int32_t bits) {
    if (bits != end_bits(AccessSet::everything())) {
      assembler_.move(Register::r0, bits);
      assembler_.and_with(Register::r3, 7);
      assembler_.shift_right(Register::r0, Register::r3);
      assembler_.and_with(Register::r0, 1);
      assembler_.jump_if(BPF_JEQ, Register::r0, 0, *otherwise_);
    }
    assembler_.move(Register::r0, verdict_);
    assembler_.exit();
  }

  Assembler& assembler_;
  std::optional<Label> otherwise_;
  std::int32_t verdict_;
  std::vector<std::pair<const Row*, Label>> rows_;
  std::map<std::int32_t, Label> ends_;
};

Result<Code> write_filter(const Table& table) {
  Assembler assembler;
  if (table != Table() && table != Table::everything()) {
    Writer::load_request(assembler);
  }
  Writer(assembler, std::nullopt, 1).write(table);
  return assembler.finish();
}

std::unexpected<Error> cannot_reload(std::size_t index, const std::string& why) {
  return fail(std::errc::operation_not_supported,
              "load the program again: instruction " + std::to_string(index) + " " + why);
}

}  // namespace

Result<Code> generate(const Table& table) {
  Code code = TRY(write_filter(table));
  const Readable<Table> read = analyse(code);
  if (!read) {
    return fail(std::errc::value_too_large,
                "prove a device filter: too many rules for one program: it " + read.error().why);
  }
  if (*read != table) {
    return fail(std::errc::state_not_recoverable,
                "prove a device filter: the code does not mean the rules (this is a bug)");
  }
  return code;
}

Result<void> check_loadable_again(const Code& code) {
  for (std::size_t i = 0; i < code.size(); ++i) {
    const Instruction& at = code[i];
    if (at.dst_reg > 10 || at.src_reg > 10) {
      return cannot_reload(i, "was blinded by the kernel (bpf_jit_harden)");
    }
    if (is_wide_load(at)) {
      if (at.src_reg != 0) {
        return cannot_reload(i, "refers to a map");
      }
      ++i;
      continue;
    }
    if (is_call(at)) {
      return cannot_reload(i, "is a call, which the kernel has rewritten");
    }
  }
  return {};
}

Result<Code> patch(const Code& original, const Override& override) {
  TRY(check_shape(original));
  TRY(check_loadable_again(original));
  if ((override.allow | override.deny) == Table::everything()) {
    return generate(override.allow - override.deny);  // the verifier refuses an original that is never reached
  }
  Assembler assembler;
  const Label start = assembler.label();
  Writer::load_request(assembler);
  if (!override.deny.allows_nothing()) {
    const Label rest = override.allow.allows_nothing() ? start : assembler.label();
    Writer(assembler, rest, 0).write(override.deny);
    if (rest.index != start.index) {
      assembler.place(rest);
    }
  }
  if (!override.allow.allows_nothing()) {
    Writer(assembler, start, 1).write(override.allow);
  }
  assembler.place(start);
  assembler.append(original);
  return assembler.finish();
}

}  // namespace hf::bpf
