#include "kernel/cgroup/filters.h"

#include <algorithm>

#include "core/bpf/analyse.h"
#include "core/bpf/call.h"
#include "core/bpf/producer.h"
#include "kernel/cgroup/symbols.h"

namespace hf::kernel {
namespace {

constexpr std::size_t kMostKept = 4096;     // programs; when it is full, the cache is cleared
constexpr std::size_t kMostMeanings = 512;  // results of analyse(), by code

template <class Map>
void clear_if_full(Map& map, std::size_t most) {
  if (map.size() >= most) {
    map.clear();
  }
}

}  // namespace

Result<ReadProgramPtr> Filters::read(container::ProgramId id) {
  const auto known = programs_.find(id.value);
  if (known != programs_.end()) {
    known->second.at = ++uses_;
    return known->second.program;
  }
  Program program = TRY(bpf_.open(id));
  std::string owner = bpf::producer_of(program.code, program.name);
  Meaning unread{std::unexpected(bpf::Opaque{"the kernel does not give out its code"}), {}, true};
  auto read = std::make_shared<ReadProgram>(std::move(program), std::move(unread), std::move(owner), nullptr, 0);
  TRY(recognise_shield(*read));
  if (!read->shield && !read->program.code.empty()) {
    read->meaning = analyse(read->program.code);
  }
  clear_if_full(programs_, kMostKept);
  programs_.emplace(id.value, Used<ReadProgramPtr>{read, ++uses_});
  return read;
}

// Recognises a shield by its name, which any program could have, and by the kernel's hash of its code, which cannot be
// forged. A shield of another version is treated like any other program that depends on a map.
Result<void> Filters::recognise_shield(ReadProgram& read) {
  const std::optional<unsigned> depth = depth_in_shield_name(read.program.name);
  if (!depth || read.program.uid != 0) {
    return {};
  }
  const Result<ShieldMapPtr> map = bpf_.open_shield_map(read.program);
  if (!map) {
    return {};
  }
  read.owner = kShieldOwner;
  if (!shield_tags_.contains(*depth)) {
    const Result<Program> own = bpf_.load_shield(**map, *depth);
    if (!own) {
      return {};
    }
    shield_tags_[*depth] = own->tag;
  }
  if (shield_tags_[*depth] != read.program.tag) {
    return {};
  }
  read.shield = TRY(open_table(*map));
  read.depth = *depth;
  read.meaning = {device::Table::everything(), {}, true};
  return {};
}

Result<ShieldTablePtr> Filters::open_table(const ShieldMapPtr& map) {
  const auto known = tables_.find(map->id());
  if (known != tables_.end()) {
    return known->second;
  }
  return tables_[map->id()] = TRY(ShieldTable::open(map));
}

Result<ProgramPtr> Filters::load(const bpf::Code& code, std::span<const container::ProgramId> attached) {
  const auto known = loaded_.find(code);
  if (known != loaded_.end() && std::ranges::find(attached, known->second.program->id) == attached.end()) {
    known->second.at = ++uses_;
    return known->second.program;
  }
  auto program = std::make_shared<const Program>(TRY(bpf_.load(code)));
  clear_if_full(loaded_, kMostKept);
  loaded_.insert_or_assign(code, Used<ProgramPtr>{program, ++uses_});
  return program;
}

void Filters::trim(std::uint64_t keep) {
  const auto is_old = [this, keep](const auto& entry) {
    return entry.second.at + keep < uses_ && entry.second.program.use_count() == 1;
  };
  std::erase_if(programs_, is_old);
  std::erase_if(loaded_, is_old);
}

Meaning Filters::analyse(const bpf::Code& code) {
  const auto known = meanings_.find(code);
  if (known != meanings_.end()) {
    return known->second;
  }
  const bpf::CallNames names = symbols_.names_for(host_, code);
  Meaning meaning{bpf::analyse(code, names), {}, bpf::may_override(code, names)};
  if (bpf::Readable<device::Table> overrides = bpf::analyse_overrides(code, names)) {
    meaning.overrides = *std::move(overrides);
    meaning.may_override = meaning.table ? !meaning.overrides.allows_nothing() : meaning.may_override;
  } else {
    meaning.table = std::unexpected(std::move(overrides).error());
  }
  clear_if_full(meanings_, kMostMeanings);
  return meanings_.emplace(code, std::move(meaning)).first->second;
}

}  // namespace hf::kernel
