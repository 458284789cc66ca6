#include "kernel/filters.h"

#include <algorithm>

#include "core/bpf/analyse.h"
#include "core/bpf/producer.h"
#include "kernel/symbols.h"

namespace hf::kernel {
namespace {

constexpr std::size_t kMostKept = 4096;     // programs; beyond, start anew
constexpr std::size_t kMostMeanings = 512;  // of code that was read before

template <class Map>
void make_room(Map& map, std::size_t most) {
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
  bpf::Readable<device::Table> meaning = program.code.empty()
                                             ? std::unexpected(bpf::Opaque{"the kernel does not give out its code"})
                                             : analyse(program.code);
  std::string owner = bpf::producer_of(program.code, program.name);
  make_room(programs_, kMostKept);
  auto read = std::make_shared<const ReadProgram>(std::move(program), std::move(meaning), std::move(owner));
  programs_.emplace(id.value, Used<ReadProgramPtr>{read, ++uses_});
  return read;
}

Result<ProgramPtr> Filters::load(const bpf::Code& code, std::span<const container::ProgramId> attached) {
  const auto known = loaded_.find(code);
  if (known != loaded_.end() && std::ranges::find(attached, known->second.program->id) == attached.end()) {
    known->second.at = ++uses_;
    return known->second.program;
  }
  auto program = std::make_shared<const Program>(TRY(bpf_.load(code)));
  make_room(loaded_, kMostKept);
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

bpf::Readable<device::Table> Filters::analyse(const bpf::Code& code) {
  const auto known = meanings_.find(code);
  if (known != meanings_.end()) {
    return known->second;
  }
  bpf::Readable<device::Table> meaning = bpf::analyse(code, symbols_.names_for(host_, code));
  make_room(meanings_, kMostMeanings);
  return meanings_.emplace(code, std::move(meaning)).first->second;
}

}  // namespace hf::kernel
