#include "adapters/systemd/allowed_cpus.h"

#include <fcntl.h>
#include <unistd.h>

#include "kernel/files/file.h"

namespace hf::systemd {
namespace {

constexpr const char* kUnits = "run/systemd/system.control";  // systemd's own place for properties set until a reboot
constexpr const char* kFile = "50-holdfast-cpus.conf";

std::string directory_of(const std::string& unit) { return std::string(kUnits) + "/" + unit + ".d"; }

}  // namespace

Result<void> write_allowed_cpus(const kernel::Host& host, const std::string& unit, const cpu::CpuSet& cpus) {
  const bool is_scope = unit.ends_with(".scope");
  if ((!is_scope && !unit.ends_with(".service")) || unit.find('/') != std::string::npos) {
    return fail(std::errc::invalid_argument, "unit " + unit + ": it is no scope and no service");
  }
  const std::string directory = directory_of(unit);
  const std::string file = directory + "/" + kFile;
  // Without the empty one the CPUs would be added to those that a runtime has set.
  const std::string text =
      std::string(is_scope ? "[Scope]\n" : "[Service]\n") + "AllowedCPUs=\nAllowedCPUs=" + to_string(cpus) + "\n";
  if (kernel::read_text(host.root.get(), file).value_or("") == text) {
    return {};
  }
  TRY(kernel::make_directories(host.root.get(), directory));
  return kernel::replace_file(host.root.get(), file, {.text = text});
}

Result<void> remove_allowed_cpus(const kernel::Host& host, const std::string& unit) {
  TRY(kernel::remove_file(host.root.get(), directory_of(unit) + "/" + kFile));
  (void)::unlinkat(host.root.get(), directory_of(unit).c_str(), AT_REMOVEDIR);  // others may have files there
  return {};
}

std::set<std::string> units_with_allowed_cpus(const kernel::Host& host) {
  std::set<std::string> units;
  for (const std::string& name : kernel::list_names(host.root.get(), kUnits)) {
    const std::string unit = name.ends_with(".d") ? name.substr(0, name.size() - 2) : "";
    if (!unit.empty() && kernel::exists(host.root.get(), directory_of(unit) + "/" + kFile)) {
      units.insert(unit);
    }
  }
  return units;
}

}  // namespace hf::systemd
