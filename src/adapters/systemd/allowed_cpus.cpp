#include "adapters/systemd/allowed_cpus.h"

#include "kernel/files/file.h"

namespace hf::systemd {

Result<void> write_allowed_cpus(const kernel::Host& host, const std::string& unit, const cpu::CpuSet& cpus) {
  const bool is_scope = unit.ends_with(".scope");
  if ((!is_scope && !unit.ends_with(".service")) || unit.find('/') != std::string::npos) {
    return fail(std::errc::invalid_argument, "unit " + unit + ": it is no scope and no service");
  }
  const std::string directory = "run/systemd/system.control/" + unit + ".d";
  const std::string file = directory + "/50-holdfast-cpus.conf";
  const std::string text =
      std::string(is_scope ? "[Scope]\n" : "[Service]\n") + "AllowedCPUs=" + to_string(cpus) + "\n";
  if (kernel::read_text(host.root.get(), file).value_or("") == text) {
    return {};
  }
  TRY(kernel::make_directories(host.root.get(), directory));
  return kernel::replace_file(host.root.get(), file, {.text = text});
}

}  // namespace hf::systemd
