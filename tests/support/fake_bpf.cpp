#include "support/fake_bpf.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/bpf/interpret.h"
#include "core/bpf/producer.h"

namespace hf::test {
namespace {

class FakeShieldMap final : public kernel::ShieldMap {
 public:
  explicit FakeShieldMap(std::uint32_t id) : id_(id) {}

  [[nodiscard]] std::uint32_t id() const override { return id_; }
  Result<void> put(const kernel::ShieldKey& key, device::Access access) override {
    entries_[key] = {key.device, access, 0, 0};
    return {};
  }
  Result<void> remove(const kernel::ShieldKey& key) override {
    entries_.erase(key);
    return {};
  }
  Result<std::optional<container::ShieldEntry>> read(const kernel::ShieldKey& key) override {
    const auto entry = entries_.find(key);
    return entry == entries_.end() ? std::nullopt : std::optional(entry->second);
  }
  Result<std::vector<kernel::ShieldKey>> list() override {
    std::vector<kernel::ShieldKey> keys;
    for (const auto& [key, entry] : entries_) {
      keys.push_back(key);
    }
    return keys;
  }
  void count(const kernel::ShieldKey& key) { ++entries_.at(key).count; }

 private:
  std::uint32_t id_;
  std::map<kernel::ShieldKey, container::ShieldEntry> entries_;
};

}  // namespace

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
  const Loaded& loaded = program->second;
  const std::vector<std::uint32_t> maps = loaded.map ? std::vector{loaded.map->id()} : std::vector<std::uint32_t>();
  return kernel::Program{kernel::Fd(), id, loaded.name, 0, loaded.at, loaded.code, loaded.tag, maps};
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

Result<void> FakeBpf::attach(const kernel::Cgroup& cgroup, const kernel::Program& program,
                             const kernel::AttachMode& mode) {
  if (const std::function<void()> other_writer = std::exchange(before_attach, nullptr)) {
    other_writer();
  }
  kernel::AttachedPrograms& here = attached_[cgroup.id.value];
  if (const kernel::AttachReplacing* instead = std::get_if<kernel::AttachReplacing>(&mode)) {
    const auto old = std::ranges::find(here.ids, instead->old.id);
    if (old == here.ids.end()) {
      return fail(std::errc::no_such_file_or_directory, "attach");
    }
    *old = program.id;
  } else if (const kernel::AttachAlone* alone = std::get_if<kernel::AttachAlone>(&mode)) {
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

Result<kernel::ShieldMapPtr> FakeBpf::create_shield_map() {
  const std::uint32_t id = next_id_++;
  return maps_[id] = std::make_shared<FakeShieldMap>(id);
}

Result<kernel::ShieldMapPtr> FakeBpf::open_shield_map(const kernel::Program& shield) {
  if (shield.maps.size() != 1) {
    return fail(std::errc::invalid_argument, "open the shield's map");
  }
  return maps_.at(shield.maps.front());
}

Result<kernel::Program> FakeBpf::load_shield(const kernel::ShieldMap& map, unsigned depth) {
  if (!has_shields) {
    return fail(std::errc::invalid_argument, "load the shield: this kernel has none");
  }
  const bpf::Code code = {{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
  programs_[next_id_] = {code, kernel::shield_name(depth), 0, shield_tag * 1000 + depth, maps_.at(map.id()), depth};
  return open({next_id_++});
}

bool FakeBpf::overrules(const Loaded& shield, const kernel::Cgroup& cgroup, const device::Request& request) {
  const auto entry = *shield.map->read({cgroup.id, shield.depth, request.device});
  if (!entry || !device::contains(entry->access, request.access)) {
    return false;
  }
  dynamic_cast<FakeShieldMap&>(*shield.map).count({cgroup.id, shield.depth, request.device});
  return true;
}

bool FakeBpf::allows(const std::vector<const kernel::Cgroup*>& line, const device::Request& request) {
  bool allowed = true;
  for (const kernel::Cgroup* cgroup : line) {
    for (const ProgramId id : attached_[cgroup->id.value].ids) {
      const Loaded& program = programs_.at(id.value);
      if (program.map) {
        allowed = allowed || overrules(program, *line.front(), request);
        continue;
      }
      const bpf::Verdict before = allowed ? bpf::Verdict::allow : bpf::Verdict::deny;
      const bpf::Readable<bpf::Verdict> verdict = bpf::interpret(program.code, request, {}, before);
      allowed = verdict && *verdict == bpf::Verdict::allow;
    }
  }
  return allowed;
}

bool FakeBpf::allows(const kernel::Cgroup& cgroup, const device::Request& request) {
  return std::ranges::all_of(attached_[cgroup.id.value].ids, [&](ProgramId id) {
    const bpf::Readable<bpf::Verdict> verdict = bpf::interpret(programs_.at(id.value).code, request);
    return verdict && *verdict == bpf::Verdict::allow;
  });
}

}  // namespace hf::test
