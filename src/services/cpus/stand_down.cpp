#include "services/cpus/stand_down.h"

#include "adapters/systemd/allowed_cpus.h"
#include "services/cpus/irqs.h"

namespace hf::cpus {

Result<void> stand_down(const kernel::Host& host, const std::string& directory) {
  Result<void> done = keep_irqs_away(host, directory, {});
  for (const std::string& unit : systemd::units_with_allowed_cpus(host)) {
    const Result<void> removed = systemd::remove_allowed_cpus(host, unit);
    done = removed ? done : removed;
  }
  return done;
}

}  // namespace hf::cpus
