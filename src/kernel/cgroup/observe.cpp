#include "kernel/cgroup/observe.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include <fcntl.h>

#include "kernel/cgroup/device_v1.h"
#include "kernel/files/file.h"

namespace hf::kernel {
namespace {

using container::Gate;
using container::Hierarchy;
using container::Observed;
using container::ProgramId;

constexpr std::string_view kHidden =
    "it allows all by default, and the kernel does not list what it refuses all the same";

Gate gate_of(const ReadProgram& read, container::Attachment attachment) {
  const Program& program = read.program;
  return {
      Hierarchy::v2,
      {},
      std::nullopt,
      true,
      read.owner,
      container::AttachedProgram{program.id, program.name, program.uid, program.loaded_at, attachment, program.code},
      std::nullopt,
      read.meaning.table,
      {},
      read.meaning.overrides,
      read.meaning.may_override,
      is_shield(read) ? std::optional(container::Shield()) : std::nullopt};
}

// Adds what a shield keeps open for one cgroup.
Result<void> add_entries(const ReadProgram& read, const Cgroup& cgroup, Gate& gate) {
  if (!read.shield) {
    return {};
  }
  gate.shield->entries = TRY(read.shield->entries_of(cgroup.id, read.depth));
  device::RuleSet rules;
  for (const container::ShieldEntry& entry : gate.shield->entries) {
    rules.push_back(rule_for(entry));
  }
  gate.overrides = device::Table::of_rules(rules);
  return {};
}

Gate gate_of(const device::V1List& list, const Cgroup& cgroup) {
  const std::string doubt = hides_exceptions(list) ? std::string(kHidden) : std::string();
  return {Hierarchy::v1,
          cgroup.where,
          cgroup.path,
          !cgroup.path.is_root(),
          {},
          std::nullopt,
          list,
          meaning(list),
          doubt,
          {},
          false,
          {}};
}

// The kernel lists the program but an LSM may forbid to open it. Only a probe can find out what such a gate decides.
Gate unreadable_gate(ProgramId id, container::Attachment attachment, const Error& error) {
  return {Hierarchy::v2,
          {},
          std::nullopt,
          true,
          {},
          container::AttachedProgram{id, {}, std::nullopt, std::nullopt, attachment, {}},
          std::nullopt,
          std::unexpected(bpf::Opaque{error.message}),
          {},
          {},
          true,
          {}};
}

Result<Gate> read_gate(Filters& filters, ProgramId id, container::Attachment attachment) {
  const Result<ReadProgramPtr> read = filters.read(id);
  if (read) {
    return gate_of(**read, attachment);
  }
  const bool forbidden =
      read.error().code == std::errc::operation_not_permitted || read.error().code == std::errc::permission_denied;
  return forbidden ? Result<Gate>(unreadable_gate(id, attachment, read.error())) : std::unexpected(read.error());
}

// The gates of one cgroup. If a program vanishes between listing and reading it, the list is read again.
Result<std::vector<Gate>> own_gates(Filters& filters, const Cgroup& cgroup) {
  constexpr int kMostTries = 1000;
  for (int tries = 1;; ++tries) {
    const AttachedPrograms attached = TRY(filters.bpf().query(cgroup, Reach::own));
    std::vector<Gate> gates;
    std::optional<Error> vanished;
    for (const ProgramId id : attached.ids) {
      Result<Gate> gate = read_gate(filters, id, attached.attachment);
      if (!gate) {
        vanished = gate.error();
        break;
      }
      gate->where = cgroup.where;
      gate->cgroup = cgroup.path;
      gates.push_back(*std::move(gate));
    }
    if (!vanished) {
      return gates;
    }
    if (vanished->code != std::errc::no_such_file_or_directory || tries == kMostTries) {
      return std::unexpected(*vanished);
    }
  }
}

// Where only a part of the hierarchy is mounted (inside a container), programs above it still decide. The kernel lists
// them among the effective programs of the cgroup.
Result<void> add_gates_above_mount(Filters& filters, const Cgroup& cgroup, Observed& observed) {
  const AttachedPrograms effective = TRY(filters.bpf().query(cgroup, Reach::effective));
  const AttachedPrograms own = TRY(filters.bpf().query(cgroup, Reach::own));  // it may have changed meanwhile
  for (const ProgramId id : effective.ids) {
    const auto is_known = [id](const Gate& gate) { return gate.program && gate.program->id == id; };
    if (std::ranges::any_of(observed.gates, is_known) || std::ranges::find(own.ids, id) != own.ids.end()) {
      continue;
    }
    // How it is attached cannot be read from here, so assume that a new program below would switch it off.
    Result<Gate> gate = read_gate(filters, id, container::Attachment::overridable);
    if (gate) {
      gate->where = "above what is mounted here";
      gate->is_own = false;
      observed.gates.push_back(*std::move(gate));
    } else if (gate.error().code != std::errc::no_such_file_or_directory) {
      return std::unexpected(gate.error());
    }
  }
  return {};
}

// Kernel (compute_effective_progs): going up, a cgroup's programs count if nothing was found below, or if they were
// attached with ALLOW_MULTI.
Result<void> add_v2(Filters& filters, const Cgroup& cgroup, Observed& observed) {
  constexpr std::uint64_t kRootInode = 1;  // Kernel: the root of every hierarchy has this inode
  if (!cgroup.path.is_root()) {
    observed.v2_where = cgroup.where;
  }
  bool found = false;
  const auto add_level = [&](const Cgroup& level, bool is_own) -> Result<void> {
    for (Gate& gate : TRY(own_gates(filters, level))) {
      if (found && gate.program->attachment != container::Attachment::several) {
        continue;
      }
      gate.is_own = is_own && !level.path.is_root();
      if (gate.shield) {
        TRY(add_entries(*TRY(filters.read(*gate.program->id)), cgroup, gate));
      }
      observed.gates.push_back(std::move(gate));
    }
    found = found || !observed.gates.empty();
    return {};
  };
  TRY(add_level(cgroup, true));
  container::CgroupId top = cgroup.id;
  std::optional<Cgroup> above;
  for (const Cgroup* level = &cgroup; !level->path.is_root(); level = &*above) {
    above = TRY(open_parent(*level));
    top = above->id;
    TRY(add_level(*above, false));
  }
  return top.value == kRootInode ? Result<void>() : add_gates_above_mount(filters, cgroup, observed);
}

Result<void> add_v1(const Cgroup& cgroup, Observed& observed) {
  Gate gate = gate_of(TRY(read_v1_list(cgroup)), cgroup);
  if (cgroup.path.is_root() && !gate.doubt.empty()) {
    const Result<bool> refuses_some = root_refuses_some(cgroup);
    gate.doubt = refuses_some && !*refuses_some ? std::string() : gate.doubt;
  }
  observed.gates.push_back(std::move(gate));
  std::optional<Cgroup> above;
  for (const Cgroup* level = &cgroup; !level->path.is_root(); level = &*above) {
    above = TRY(open_parent(*level));
    device::V1List list = TRY(read_v1_list(*above));
    observed.v1_above.push_back({above->where, std::move(list)});
  }
  return {};
}

}  // namespace

Result<Observed> observe(Filters& filters, const CgroupsOfProcess& cgroups) {
  Observed observed;
  if (cgroups.v2) {
    TRY(add_v2(filters, *cgroups.v2, observed));
  }
  if (cgroups.v1) {
    TRY(add_v1(*cgroups.v1, observed));
  }
  return observed;
}

Result<Gate> observe_program(Filters& filters, ProgramId id) {
  const ReadProgramPtr read = TRY(filters.read(id));
  return gate_of(*read, container::Attachment::several);
}

Result<ObservedHost> observe_host(const Host& host, Filters& filters) {
  ObservedHost result;
  if (host.v2) {
    result.too_deep += TRY(walk(TRY(open_root(host, Hierarchy::v2)), [&](const Cgroup& cgroup) -> Result<void> {
      Result<std::vector<Gate>> own = own_gates(filters, cgroup);
      if (!own && own.error().code == std::errc::no_such_file_or_directory) {
        return {};  // it was removed meanwhile
      }
      for (Gate& gate : TRY(std::move(own))) {
        result.gates.push_back(std::move(gate));
      }
      return {};
    }));
  }
  if (host.v1) {
    result.too_deep += TRY(walk(TRY(open_root(host, Hierarchy::v1)), [&](const Cgroup& cgroup) -> Result<void> {
      const Result<device::V1List> list = read_v1_list(cgroup);
      if (!list && list.error().code == std::errc::no_such_file_or_directory) {
        return {};
      }
      if (!list) {
        return std::unexpected(list.error());
      }
      if (is_scratch_cgroup(cgroup)) {
        return {};  // it belongs to another holdfast process that runs root_refuses_some()
      }
      if (!hides_exceptions(*list)) {
        result.gates.push_back(gate_of(*list, cgroup));
      } else if (!cgroup.path.is_root()) {
        ++result.hiding;
      }
      return {};
    }));
  }
  return result;
}

}  // namespace hf::kernel
