#include "support/fake_bpf.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/bpf/interpret.h"
#include "core/bpf/producer.h"

namespace hf::test {

using container::Attachment;
using container::ProgramId;

Result<kernel::AttachedPrograms> FakeBpf::query(const kernel::Cgroup& cgroup, kernel::Reach) {
  return attached_[cgroup.id.value];
}

Result<kernel::Program> FakeBpf::open(ProgramId id) {
  if (forbids_opening) {
    return fail(std::errc::permission_denied, "open program " + std::to_string(id.value));
  }
  const auto program = programs_.find(id.value);
  if (program == programs_.end()) {
    return fail(std::errc::no_such_file_or_directory, "open program " + std::to_string(id.value));
  }
  return kernel::Program{kernel::Fd(), id, program->second.name, 0, program->second.at, program->second.code};
}

Result<kernel::Program> FakeBpf::load(const bpf::Code& code) {
  ++loads;
  programs_[next_id_] = {code, std::string(bpf::kOurName), 0};
  return open({next_id_++});
}

void FakeBpf::add(const kernel::Cgroup& cgroup, const bpf::Code& code, const std::string& name,
                  std::int64_t loaded_at) {
  programs_[next_id_] = {code, name, loaded_at};
  attached_[cgroup.id.value].ids.push_back({next_id_++});
}

Result<void> FakeBpf::attach(const kernel::Cgroup& cgroup, const kernel::Program& program, const kernel::How& how) {
  if (const std::function<void()> faster = std::exchange(before_attach, nullptr)) {
    faster();
  }
  kernel::AttachedPrograms& here = attached_[cgroup.id.value];
  if (const kernel::InsteadOf* instead = std::get_if<kernel::InsteadOf>(&how)) {
    const auto old = std::ranges::find(here.ids, instead->old.id);
    if (old == here.ids.end()) {
      return fail(std::errc::no_such_file_or_directory, "attach");
    }
    *old = program.id;
  } else if (const kernel::Alone* alone = std::get_if<kernel::Alone>(&how)) {
    if (!here.ids.empty() && here.attachment != alone->attachment) {
      return fail(std::errc::operation_not_permitted, "attach");
    }
    if (alone->revision != 0 && alone->revision != here.revision) {
      return fail(std::errc(ESTALE), "attach");
    }
    here.attachment = alone->attachment;
    here.ids = {program.id};
  } else {
    if (!here.ids.empty() && here.attachment != Attachment::several) {
      return fail(std::errc::operation_not_permitted, "attach");
    }
    here.attachment = Attachment::several;
    here.ids.push_back(program.id);
  }
  ++here.revision;
  return {};
}

Result<void> FakeBpf::detach(const kernel::Cgroup& cgroup, const kernel::Program& program, std::uint64_t) {
  kernel::AttachedPrograms& here = attached_[cgroup.id.value];
  if (std::erase(here.ids, program.id) == 0) {
    return fail(std::errc::no_such_file_or_directory, "detach");
  }
  ++here.revision;
  return {};
}

bool FakeBpf::allows(const kernel::Cgroup& cgroup, const device::Request& request) {
  return std::ranges::all_of(attached_[cgroup.id.value].ids, [&](ProgramId id) {
    const bpf::Readable<bpf::Verdict> verdict = bpf::interpret(programs_.at(id.value).code, request);
    return verdict && *verdict == bpf::Verdict::allow;
  });
}

}  // namespace hf::test
