#include "kernel/cgroup/symbols.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "kernel/files/file.h"

namespace hf::kernel {
namespace {

std::set<std::int32_t> distances_called(const bpf::Code& code) {
  constexpr std::int32_t kLastHelper = 1023;  // up to here they are helper ids, in code that was not loaded yet
  std::set<std::int32_t> distances;
  for (const bpf::Instruction& at : code) {
    if (bpf::is_call(at) && at.src_reg == 0 && (at.imm > kLastHelper || at.imm < 0)) {
      distances.insert(at.imm);
    }
  }
  return distances;
}

struct Symbol {
  std::uint64_t address;
  std::string_view name;
};

std::optional<Symbol> parse_symbol(std::string_view line) {
  const std::vector<std::string_view> fields = split_fields(line);
  const std::optional<std::uint64_t> address =
      fields.size() >= 3 ? parse_number<std::uint64_t>(fields[0], 16) : std::nullopt;
  return address && *address != 0 ? std::optional(Symbol{*address, fields[2]}) : std::nullopt;
}

// Kernel: the number in a call is the function's distance from __bpf_call_base.
bpf::CallNames read_distances(const Host& host) {
  bpf::CallNames names;
  const Result<std::string> text = read_text(host.root.get(), "proc/kallsyms");
  const std::size_t base_line = text ? text->find(" __bpf_call_base\n") : std::string::npos;
  if (base_line == std::string::npos) {
    return names;
  }
  const std::size_t start = text->rfind('\n', base_line) + 1;
  const std::optional<Symbol> base = parse_symbol(std::string_view(*text).substr(start, base_line + 16 - start));
  if (!base) {
    return names;
  }
  for (const std::string_view line : split(*text, '\n')) {
    const std::optional<Symbol> symbol = parse_symbol(line);
    const std::int64_t distance = symbol ? std::int64_t(symbol->address - base->address) : 0;
    // Helpers are functions named bpf_…; if an address has several names, any of them will do.
    if (symbol && symbol->name.starts_with("bpf_") && distance == std::int32_t(distance)) {
      names.emplace(std::int32_t(distance), symbol->name);
    }
  }
  return names;
}

}  // namespace

bpf::CallNames KernelSymbols::names_for(const Host& host, const bpf::Code& code) {
  bpf::CallNames names;
  for (const std::int32_t distance : distances_called(code)) {
    if (!all_) {
      all_ = read_distances(host);
    }
    if (const auto known = all_->find(distance); known != all_->end()) {
      names.insert(*known);
    }
  }
  return names;
}

}  // namespace hf::kernel
