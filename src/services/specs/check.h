// Check: finds what is wrong with the CDI specs of this host, and which of their devices can be used.
#pragma once

#include <string>
#include <vector>

#include "adapters/cdi/cdi.h"
#include "core/base/result.h"
#include "core/device/inventory.h"
#include "core/report/cdi_report.h"
#include "kernel/files/host.h"

namespace hf::specs {

// The specs of /etc/cdi and /var/run/cdi.
report::CdiCheck check_registry(const kernel::Host& host, const device::Inventory& inventory);
// Checks the named files, each on its own; a file that cannot be read is an error.
Result<report::CdiCheck> check_files(const kernel::Host& host, const device::Inventory& inventory,
                                     const std::vector<std::string>& files);

report::CdiList list_devices(const kernel::Host& host);

// What a container with all these devices would get, or an error that says which name is unknown, and why.
Result<container::ContainerEdits> resolve(const cdi::Registry& registry, const std::vector<std::string>& names);

}  // namespace hf::specs
