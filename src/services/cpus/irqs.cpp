#include "services/cpus/irqs.h"

#include <fcntl.h>

#include "core/base/text.h"
#include "kernel/cpu/cpu_cgroup.h"
#include "kernel/cpu/irq.h"
#include "kernel/files/file.h"

namespace hf::cpus {
namespace {

// Lines such as "24 0-63".
kernel::IrqAffinities parse(const std::string& text) {
  kernel::IrqAffinities affinities;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t space = line.find(' ');
    const std::optional<std::uint32_t> irq = parse_number<std::uint32_t>(line.substr(0, space));
    const Result<cpu::CpuSet> cpus =
        cpu::parse_cpu_set(space == std::string_view::npos ? "" : trim(line.substr(space)));
    if (irq && cpus && !cpus->empty()) {
      affinities[*irq] = *cpus;
    }
  }
  return affinities;
}

std::string render(const kernel::IrqAffinities& affinities) {
  std::string text;
  for (const auto& [irq, cpus] : affinities) {
    text += std::to_string(irq) + " " + to_string(cpus) + "\n";
  }
  return text;
}

}  // namespace

Result<void> keep_irqs_away(const kernel::Host& host, const std::string& directory, const cpu::CpuSet& exclusive,
                            const cpu::CpuSet& released) {
  const std::string file = directory + "/irqs";
  const kernel::IrqAffinities saved = parse(kernel::read_text(AT_FDCWD, file).value_or(""));
  if (saved.empty() && exclusive.empty()) {
    return {};
  }
  const kernel::IrqAffinities now = kernel::read_irq_affinities(host);
  kernel::IrqAffinities original = saved;
  std::erase_if(original, [&now](const auto& entry) { return !now.contains(entry.first); });
  for (const auto& [irq, cpus] : now) {
    if (cpus.overlaps(exclusive)) {
      original.try_emplace(irq, cpus);
    }
  }
  if (original != saved && !original.empty()) {  // before anything is moved
    TRY(kernel::replace_file(AT_FDCWD, file, {.text = render(original), .mode = 0600}));
  }
  const cpu::CpuSet others = kernel::read_online_cpus(host).value_or(cpu::CpuSet()) - exclusive;
  Result<void> problem;
  for (const auto& [irq, cpus] : original) {
    const cpu::CpuSet rest = cpus - exclusive;
    const cpu::CpuSet& wanted = rest.empty() ? others : rest;
    const bool returns = exclusive.empty() || cpus.overlaps(released);
    const bool is_due = now.at(irq).overlaps(exclusive) || (returns && wanted != now.at(irq));
    const bool is_moved = is_due && !wanted.empty();
    const Result<void> moved = is_moved ? kernel::write_irq_affinity(host, irq, wanted) : Result<void>();
    // EIO: the kernel manages this interrupt itself.
    if (!moved && moved.error().code != std::errc::io_error) {
      problem = moved;
    }
  }
  return exclusive.empty() && problem ? kernel::remove_file(AT_FDCWD, file) : problem;
}

}  // namespace hf::cpus
