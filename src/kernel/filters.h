// Filters: device programs with their meaning, read once, and programs of ours, loaded once.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>

#include "core/base/result.h"
#include "core/bpf/instruction.h"
#include "core/container/gate.h"
#include "core/device/table.h"
#include "kernel/bpf_api.h"
#include "kernel/host.h"
#include "kernel/shield_table.h"
#include "kernel/symbols.h"

namespace hf::kernel {

inline constexpr const char* kShieldOwner = "holdfast shield";

struct Meaning {
  bpf::Readable<device::Table> table;  // of what the programs before it let through
  device::Table overrides;             // of what one of them refused
  bool may_override = false;
};

struct ReadProgram {
  Program program;
  Meaning meaning;
  std::string owner;
  ShieldTablePtr shield;  // of holdfast's own shield, of this version: its entries say what it overrules
  unsigned depth = 0;     // of the cgroups it is made for
};

// holdfast's shield, of any version.
inline bool is_shield(const ReadProgram& read) { return read.owner == kShieldOwner; }

// Owned by Filters, which may forget them at any time, and by whoever uses them meanwhile.
using ReadProgramPtr = std::shared_ptr<const ReadProgram>;
using ProgramPtr = std::shared_ptr<const Program>;

class Filters {
 public:
  Filters(const Host& host, Bpf& bpf) : host_(host), bpf_(bpf) {}

  [[nodiscard]] Bpf& bpf() { return bpf_; }
  [[nodiscard]] const Host& host() const { return host_; }

  // A program held open keeps its id, so what was read of it stays true.
  Result<ReadProgramPtr> read(container::ProgramId id);
  // Kernel: a program cannot be attached to a cgroup twice, so it must be none of those that are there.
  Result<ProgramPtr> load(const bpf::Code& code, std::span<const container::ProgramId> attached);
  Meaning analyse(const bpf::Code& code);

  // The entries of a shield's map: one table, whichever of its programs they are reached by.
  Result<ShieldTablePtr> open_table(const ShieldMapPtr& map);

  // Lets go of programs that were not among the last ones used and that nobody else holds, so that the kernel can free
  // those that are attached nowhere any more.
  void trim(std::uint64_t keep);

 private:
  template <class Pointer>
  struct Used {
    Pointer program;
    std::uint64_t at = 0;  // in uses
  };

  struct HashCode {
    std::size_t operator()(const bpf::Code& code) const { return bpf::hash_of(code); }
  };
  struct SameCode {
    bool operator()(const bpf::Code& a, const bpf::Code& b) const { return bpf::same(a, b); }
  };

  Result<void> recognise_shield(ReadProgram& read);

  const Host& host_;
  Bpf& bpf_;
  KernelSymbols symbols_;
  std::map<std::uint32_t, ShieldTablePtr> tables_;  // by the map's id
  std::map<unsigned, std::uint64_t> shield_tags_;   // of our own code, by depth
  std::uint64_t uses_ = 0;
  std::unordered_map<std::uint32_t, Used<ReadProgramPtr>> programs_;
  std::unordered_map<bpf::Code, Used<ProgramPtr>, HashCode, SameCode> loaded_;
  std::unordered_map<bpf::Code, Meaning, HashCode, SameCode> meanings_;
};

}  // namespace hf::kernel
