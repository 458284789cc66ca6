// Filters: a cache of device programs with their meaning, each read once, and of our own programs, each loaded once.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>

#include "core/base/result.h"
#include "core/bpf/instruction.h"
#include "core/container/gate/gate.h"
#include "core/device/table.h"
#include "kernel/cgroup/bpf_api.h"
#include "kernel/cgroup/shield_table.h"
#include "kernel/cgroup/symbols.h"
#include "kernel/files/host.h"

namespace hf::kernel {

inline constexpr const char* kShieldOwner = "holdfast shield";

struct Meaning {
  bpf::Readable<device::Table> table;  // what it allows of what the programs before it let through
  device::Table overrides;             // what it allows of what one of them refused
  bool may_override = false;
};

struct ReadProgram {
  Program program;
  Meaning meaning;
  std::string owner;
  ShieldTablePtr shield;  // only of a holdfast shield of this version: its entries are what it overrules
  unsigned depth = 0;     // of the cgroups that the shield was loaded for
};

// True of a holdfast shield of any version.
inline bool is_shield(const ReadProgram& read) { return read.owner == kShieldOwner; }

// Owned by Filters, which may drop them at any time, and by their current users.
using ReadProgramPtr = std::shared_ptr<const ReadProgram>;
using ProgramPtr = std::shared_ptr<const Program>;

class Filters {
 public:
  Filters(const Host& host, Bpf& bpf) : host_(host), bpf_(bpf) {}

  [[nodiscard]] Bpf& bpf() { return bpf_; }
  [[nodiscard]] const Host& host() const { return host_; }

  // A program that is held open keeps its id, so what was read of it stays valid.
  Result<ReadProgramPtr> read(container::ProgramId id);
  // Kernel: a program cannot be attached to a cgroup twice, so the result is never one of those in `attached`.
  Result<ProgramPtr> load(const bpf::Code& code, std::span<const container::ProgramId> attached);
  Meaning analyse(const bpf::Code& code);

  // The entries of a shield's map. All programs that use the map share one table.
  Result<ShieldTablePtr> open_table(const ShieldMapPtr& map);

  // Drops programs that were not among the last `keep` uses and have no other owner, so that the kernel can free those
  // that are no longer attached.
  void trim(std::uint64_t keep);

 private:
  template <class Pointer>
  struct Used {
    Pointer program;
    std::uint64_t at = 0;  // the value of uses_ at its last use
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
  std::map<std::uint32_t, ShieldTablePtr> tables_;  // by map id
  std::map<unsigned, std::uint64_t> shield_tags_;   // of our own code, by depth
  std::uint64_t uses_ = 0;
  std::unordered_map<std::uint32_t, Used<ReadProgramPtr>> programs_;
  std::unordered_map<bpf::Code, Used<ProgramPtr>, HashCode, SameCode> loaded_;
  std::unordered_map<bpf::Code, Meaning, HashCode, SameCode> meanings_;
};

}  // namespace hf::kernel
