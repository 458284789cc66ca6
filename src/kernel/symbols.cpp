#include "kernel/symbols.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "kernel/file.h"

namespace hf::kernel {
namespace {

std::set<std::int32_t> distances_called(const bpf::Code& code) {
  constexpr std::int32_t kLastHelper = 1023;  // below lie helper ids, in programs as written
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
  const std::vector<std::string_view> words = split_words(line);
  const std::optional<std::uint64_t> address =
      words.size() >= 3 ? parse_number<std::uint64_t>(words[0], 16) : std::nullopt;
  return address && *address != 0 ? std::optional(Symbol{*address, words[2]}) : std::nullopt;
}

}  // namespace

bpf::CallNames read_call_names(const Host& host, const bpf::Code& code) {
  bpf::CallNames names;
  const std::set<std::int32_t> distances = distances_called(code);
  if (distances.empty()) {
    return names;
  }
  const Result<std::string> text = read_text(host.root.get(), "proc/kallsyms");
  // Kernel: the number in a call is the function's distance from __bpf_call_base.
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
    if (symbol && distance == std::int32_t(distance) && distances.contains(std::int32_t(distance))) {
      names.emplace(std::int32_t(distance), symbol->name);
    }
  }
  return names;
}

}  // namespace hf::kernel
