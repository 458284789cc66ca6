#include "kernel/device_v2.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include "core/bpf/generate.h"
#include "kernel/file.h"

namespace hf::kernel {
namespace {

using container::Attachment;
using container::ProgramId;

// Frozen until it goes away. cgroup.freeze is there on every v2 cgroup but the root since 5.2.
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

 private:
  explicit Frozen(const Cgroup* cgroup) : cgroup_(cgroup) {}

  const Cgroup* cgroup_;
};

Result<void> check_nothing_below(Filters& filters, const Cgroup& cgroup) {
  return walk(cgroup, [&](const Cgroup& below) -> Result<void> {
    if (below.id == cgroup.id || TRY(filters.bpf().query(below, Reach::own)).ids.empty()) {
      return {};
    }
    return fail(std::errc::device_or_resource_busy,
                "lock " + cgroup.where + ": " + below.where + " below has programs of its own");
  });
}

struct Own {
  AttachedPrograms attached;
  device::Table meaning;
};

Result<Own> read_own(Filters& filters, const Cgroup& cgroup) {
  Own own{TRY(filters.bpf().query(cgroup, Reach::own)), device::Table::everything()};
  for (const ProgramId id : own.attached.ids) {
    const ReadProgramPtr program = TRY(filters.read(id));
    if (!program->meaning) {
      return fail(std::errc::operation_not_supported, "merge the programs of " + cgroup.where + ": program " +
                                                          std::to_string(id.value) +
                                                          " cannot be read: " + program->meaning.error().why);
    }
    own.meaning = own.meaning & *program->meaning;
  }
  return own;
}

// Takes all programs off a frozen cgroup and attaches one in their place; puts them back if that fails.
Result<void> exchange_frozen(Filters& filters, const Cgroup& cgroup, const Own& own, const Program& merged,
                             const How& how) {
  const Frozen frozen = TRY(Frozen::freeze(cgroup));
  std::vector<ReadProgramPtr> taken;
  const auto put_back = [&] {
    for (const ReadProgramPtr& read : taken) {
      const How same =
          own.attached.attachment == Attachment::several ? How(Beside{}) : How(Alone{own.attached.attachment, 0});
      (void)filters.bpf().attach(cgroup, read->program, same);
    }
  };
  for (const ProgramId id : own.attached.ids) {
    const ReadProgramPtr read = TRY(filters.read(id));
    if (Result<void> detached = filters.bpf().detach(cgroup, read->program); !detached) {
      put_back();
      return detached;
    }
    taken.push_back(read);
  }
  Result<void> attached = filters.bpf().attach(cgroup, merged, how);
  if (!attached) {
    put_back();
  }
  return attached;
}

Result<ProgramId> exchange_all(Filters& filters, const Cgroup& cgroup, Attachment wanted) {
  const Own own = TRY(read_own(filters, cgroup));
  if (!own.attached.ids.empty() && own.attached.attachment == wanted && own.attached.ids.size() == 1) {
    return own.attached.ids.front();
  }
  const ProgramPtr merged = TRY(filters.load(TRY(bpf::generate(own.meaning))));
  const How how = wanted == Attachment::several ? How(Beside{}) : How(Alone{wanted, 0});
  TRY(exchange_frozen(filters, cgroup, own, *merged, how));
  return merged->id;
}

}  // namespace

Result<ProgramId> replace_program(Filters& filters, const Cgroup& cgroup, ProgramId old, const bpf::Code& code) {
  const ProgramPtr replacement = TRY(filters.load(code));
  const ReadProgramPtr current = TRY(filters.read(old));
  const AttachedPrograms attached = TRY(filters.bpf().query(cgroup, Reach::own));
  if (std::ranges::find(attached.ids, old) == attached.ids.end()) {
    return fail(std::errc::no_such_file_or_directory,
                "replace program " + std::to_string(old.value) + " of " + cgroup.where + ": it is no longer attached");
  }
  const How how = attached.attachment == Attachment::several ? How(InsteadOf{current->program})
                                                             : How(Alone{attached.attachment, attached.revision});
  TRY(filters.bpf().attach(cgroup, *replacement, how));
  return replacement->id;
}

Result<ProgramId> attach_program(Filters& filters, const Cgroup& cgroup, const bpf::Code& code) {
  const ProgramPtr program = TRY(filters.load(code));
  TRY(filters.bpf().attach(cgroup, *program, Beside{}));
  return program->id;
}

Result<ProgramId> lock_programs(Filters& filters, const Cgroup& cgroup) {
  TRY(check_nothing_below(filters, cgroup));
  return exchange_all(filters, cgroup, Attachment::single);
}

Result<ProgramId> unlock_programs(Filters& filters, const Cgroup& cgroup) {
  return exchange_all(filters, cgroup, Attachment::several);
}

}  // namespace hf::kernel
