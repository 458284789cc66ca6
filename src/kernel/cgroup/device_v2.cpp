#include "kernel/cgroup/device_v2.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>
#include <vector>

#include "core/bpf/generate.h"
#include "kernel/cgroup/exchange_note.h"
#include "kernel/files/file.h"

namespace hf::kernel {
namespace {

using container::Attachment;
using container::ProgramId;

// Keeps a cgroup frozen until this object is destroyed, or beyond that after keep_frozen(). Kernel: since 5.2 every v2
// cgroup but the root has cgroup.freeze.
class Frozen {
 public:
  static Result<Frozen> freeze(const Cgroup& cgroup) {
    const bool was_frozen = TRY(read_text(cgroup.directory.get(), "cgroup.freeze")).starts_with('1');
    TRY(write_text(cgroup.directory.get(), "cgroup.freeze", "1"));
    Frozen frozen(was_frozen ? nullptr : &cgroup);
    // Processes freeze when they next return to user space; one in an uninterruptible wait may take long.
    for (int tries = 0; tries < 2000; ++tries) {
      const std::string events = TRY(read_text(cgroup.directory.get(), "cgroup.events"));
      if (events.find("frozen 1") != std::string::npos) {
        return frozen;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return fail(std::errc::timed_out, "freeze " + cgroup.where + ": a process does not stop");
  }

  Frozen(Frozen&& other) noexcept : cgroup_(std::exchange(other.cgroup_, nullptr)) {}
  Frozen& operator=(Frozen&&) = delete;
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;
  ~Frozen() {
    if (cgroup_ != nullptr) {
      (void)write_text(cgroup_->directory.get(), "cgroup.freeze", "0");
    }
  }

  void keep_frozen() { cgroup_ = nullptr; }

 private:
  explicit Frozen(const Cgroup* cgroup) : cgroup_(cgroup) {}

  const Cgroup* cgroup_;
};

// Blocks signals, so that none ends this process between detaching the old programs and attaching the new one.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all{};
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

Result<void> check_nothing_below(Filters& filters, const Cgroup& cgroup) {
  const std::size_t left_out = TRY(walk(cgroup, [&](const Cgroup& below) -> Result<void> {
    if (below.id == cgroup.id || TRY(filters.bpf().query(below, Reach::own)).ids.empty()) {
      return {};
    }
    return fail(std::errc::device_or_resource_busy,
                "lock " + cgroup.where + ": " + below.where + " below has programs of its own");
  }));
  return left_out == 0 ? Result<void>()
                       : fail(std::errc::value_too_large, "lock " + cgroup.where + ": cgroups lie too deep below it");
}

struct OwnPrograms {
  AttachedPrograms attached;
  std::vector<ReadProgramPtr> programs;
  device::Table meaning;
};

Result<OwnPrograms> read_own_programs(Filters& filters, const Cgroup& cgroup) {
  OwnPrograms own{TRY(filters.bpf().query(cgroup, Reach::own)), {}, device::Table::everything()};
  if (own.attached.ids.empty()) {
    return fail(std::errc::operation_not_supported, "lock " + cgroup.where + ": it has no program of its own");
  }
  for (const ProgramId id : own.attached.ids) {
    own.programs.push_back(TRY(filters.read(id)));
    const ReadProgram& program = *own.programs.back();
    if (!program.meaning.table || program.meaning.may_override) {
      const std::string why = program.meaning.table ? "overrules others" : program.meaning.table.error().why;
      return fail(std::errc::operation_not_supported, "merge the programs of " + cgroup.where + ": program " +
                                                          std::to_string(id.value) + " cannot be read: it " + why);
    }
    own.meaning = own.meaning & *program.meaning.table;
  }
  return own;
}

AttachMode mode_for(Attachment attachment) {
  return attachment == Attachment::several ? AttachMode(AttachAlongside{}) : AttachMode(AttachAlone{attachment, 0});
}

// Attaches the first `detached` programs again as they were.
Result<void> restore_programs(Filters& filters, const Cgroup& cgroup, const OwnPrograms& own, std::size_t detached) {
  for (std::size_t i = 0; i < detached; ++i) {
    TRY(filters.bpf().attach(cgroup, own.programs[i]->program, mode_for(own.attached.attachment)));
  }
  return {};
}

// Freezes the cgroup, detaches its programs and attaches `merged` instead. If that fails, the old programs are attached
// again; if even that fails, the cgroup stays frozen rather than running without a filter.
Result<void> exchange_frozen(Filters& filters, const Cgroup& cgroup, const OwnPrograms& own, const Program& merged,
                             Attachment wanted, ExchangeNote& note) {
  Frozen frozen = TRY(Frozen::freeze(cgroup));
  const AttachedPrograms now = TRY(filters.bpf().query(cgroup, Reach::own));
  if (now.ids != own.attached.ids || now.attachment != own.attached.attachment) {
    return fail(std::errc(ESTALE), "exchange the programs of " + cgroup.where + ": another process has changed them");
  }
  std::size_t detached = 0;
  Result<void> done;
  const bool alone = now.attachment != Attachment::several;
  for (; done && detached < own.programs.size(); detached += done ? 1 : 0) {
    done = filters.bpf().detach(cgroup, own.programs[detached]->program, alone ? now.revision : 0);
  }
  if (done) {
    done = filters.bpf().attach(cgroup, merged, mode_for(wanted));
  }
  if (done && wanted == Attachment::single) {
    done = check_nothing_below(filters, cgroup);
    if (!done && !filters.bpf().detach(cgroup, merged, 0)) {
      frozen.keep_frozen();
      note.stay();
      return done;
    }
  }
  if (!done && !restore_programs(filters, cgroup, own, detached)) {
    frozen.keep_frozen();
    note.stay();
    return fail(done.error().code, done.error().message + "; its programs could not be restored, so it stays frozen");
  }
  return done;
}

Result<ProgramId> exchange_all(Filters& filters, const Cgroup& cgroup, Attachment wanted) {
  const OwnPrograms own = TRY(read_own_programs(filters, cgroup));
  if (own.attached.attachment == wanted && own.attached.ids.size() == 1) {
    return own.attached.ids.front();
  }
  const bpf::Code code = TRY(bpf::generate(own.meaning));
  const ProgramPtr merged = TRY(filters.load(code, own.attached.ids));
  const BlockedSignals blocked;
  ExchangeNote note = TRY(ExchangeNote::write(filters.host(), cgroup, wanted, code));
  TRY(exchange_frozen(filters, cgroup, own, *merged, wanted, note));
  return merged->id;
}

}  // namespace

Result<ProgramId> replace_program(Filters& filters, const Cgroup& cgroup, ProgramId old, const bpf::Code& code) {
  const ReadProgramPtr current = TRY(filters.read(old));
  const AttachedPrograms attached = TRY(filters.bpf().query(cgroup, Reach::own));
  const ProgramPtr replacement = TRY(filters.load(code, attached.ids));
  if (std::ranges::find(attached.ids, old) == attached.ids.end()) {
    return fail(std::errc::no_such_file_or_directory,
                "replace program " + std::to_string(old.value) + " of " + cgroup.where + ": it is no longer attached");
  }
  const AttachMode mode = attached.attachment == Attachment::several
                              ? AttachMode(AttachReplacing{current->program})
                              : AttachMode(AttachAlone{attached.attachment, attached.revision});
  TRY(filters.bpf().attach(cgroup, *replacement, mode));
  return replacement->id;
}

Result<ProgramId> attach_program(Filters& filters, const Cgroup& cgroup, const bpf::Code& code) {
  const AttachedPrograms attached = TRY(filters.bpf().query(cgroup, Reach::own));
  const ProgramPtr program = TRY(filters.load(code, attached.ids));
  TRY(filters.bpf().attach(cgroup, *program, AttachAlongside{}));
  return program->id;
}

Result<void> detach_program(Filters& filters, const Cgroup& cgroup, ProgramId old, std::size_t programs) {
  const ReadProgramPtr current = TRY(filters.read(old));
  const AttachedPrograms attached = TRY(filters.bpf().query(cgroup, Reach::own));
  if (attached.attachment != Attachment::several || attached.ids.size() != programs || programs < 2 ||
      std::ranges::find(attached.ids, old) == attached.ids.end()) {
    return fail(std::errc::no_such_file_or_directory, "detach program " + std::to_string(old.value) + " from " +
                                                          cgroup.where + ": another process has changed its programs");
  }
  return filters.bpf().detach(cgroup, current->program, attached.revision);
}

Result<ProgramId> lock_programs(Filters& filters, const Cgroup& cgroup) {
  TRY(check_nothing_below(filters, cgroup));
  return exchange_all(filters, cgroup, Attachment::single);
}

Result<ProgramId> unlock_programs(Filters& filters, const Cgroup& cgroup) {
  return exchange_all(filters, cgroup, Attachment::several);
}

}  // namespace hf::kernel
