#include "kernel/cpu/irq.h"

#include "core/base/text.h"
#include "kernel/files/file.h"

namespace hf::kernel {
namespace {

constexpr const char* kDirectory = "proc/irq";

std::string file_of(std::uint32_t irq) {
  return std::string(kDirectory) + "/" + std::to_string(irq) + "/smp_affinity_list";
}

}  // namespace

IrqAffinities read_irq_affinities(const Host& host) {
  IrqAffinities affinities;
  for (const std::string& name : list_names(host.root.get(), kDirectory)) {
    const std::optional<std::uint32_t> irq = parse_number<std::uint32_t>(name);
    const Result<std::string> text = irq ? read_text(host.root.get(), file_of(*irq)) : Result<std::string>("");
    const Result<cpu::CpuSet> cpus = cpu::parse_cpu_set(text ? trim(*text) : "");
    if (irq && cpus && !cpus->empty()) {
      affinities[*irq] = *cpus;
    }
  }
  return affinities;
}

Result<void> write_irq_affinity(const Host& host, std::uint32_t irq, const cpu::CpuSet& cpus) {
  return write_text(host.root.get(), file_of(irq), to_string(cpus) + "\n");
}

}  // namespace hf::kernel
