// BpfApi: the bpf(2) calls for device filters and the shield, implemented by the kernel, or by a fake in tests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/bpf/instruction.h"
#include "core/container/gate/gate.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/cgroup/shield_map.h"
#include "kernel/files/fd.h"

namespace hf::kernel {

struct AttachedPrograms {
  std::vector<container::ProgramId> ids;  // in the order they run
  container::Attachment attachment = container::Attachment::several;
  std::uint64_t revision = 0;  // counts changes; 0 where the kernel has no such counter (before 6.17)
};

enum class Reach : std::uint8_t { own, effective };  // the cgroup's own programs, or all that run for its processes

struct Program {
  Fd fd;  // keeps the program, and with it the id, alive
  container::ProgramId id;
  std::string name;
  std::uint32_t uid = 0;
  std::optional<std::int64_t> loaded_at;  // seconds since 1970
  bpf::Code code;                         // empty where the kernel withholds it
  std::uint64_t tag = 0;                  // the kernel's hash of the code, whatever maps it uses
  std::vector<std::uint32_t> maps;        // ids
};

// How a program is attached to a cgroup.
struct AttachAlongside {};  // in addition to the programs already attached
struct AttachReplacing {    // compare and swap: fails with no_such_file_or_directory if `old` is no longer attached
  const Program& old;
};
struct AttachAlone {  // without ALLOW_MULTI: replaces the one program attached in the same way, if there is one
  container::Attachment attachment = container::Attachment::single;
  std::uint64_t revision = 0;  // of the state the decision was based on; 0: not checked
};
using AttachMode = std::variant<AttachAlongside, AttachReplacing, AttachAlone>;

class Bpf {
 public:
  virtual ~Bpf() = default;

  virtual Result<AttachedPrograms> query(const Cgroup& cgroup, Reach reach) = 0;
  virtual Result<Program> open(container::ProgramId id) = 0;
  virtual Result<Program> load(const bpf::Code& code) = 0;
  virtual Result<void> attach(const Cgroup& cgroup, const Program& program, const AttachMode& mode) = 0;
  // Kernel: a program attached alone is detached whichever program is passed; the revision, where there is one, makes
  // that safe.
  virtual Result<void> detach(const Cgroup& cgroup, const Program& program, std::uint64_t revision) = 0;

  virtual Result<ShieldMapPtr> create_shield_map() = 0;
  virtual Result<ShieldMapPtr> open_shield_map(const Program& shield) = 0;  // the map of a loaded shield
  virtual Result<Program> load_shield(const ShieldMap& map, unsigned depth) = 0;
};

std::unique_ptr<Bpf> open_kernel_bpf();

// Loads the same code again as a separate program under the same name, as if its original loader had done so.
Result<Program> load_again(const Program& program);

// Did a change fail only because another process changed the cgroup meanwhile?
bool is_overtaken(const Error& error);

}  // namespace hf::kernel
