// Update: an engine's update of a container keeps the devices that we gave it.
#pragma once

#include <string>
#include <vector>

#include "adapters/ledger/ledger.h"
#include "adapters/oci/command_line.h"
#include "kernel/files/fd.h"

namespace hf::shim {

struct SafeUpdate {
  std::vector<std::string> arguments;
  kernel::Fd resources;  // that the arguments name: open until the runtime has read them
};
// The engine may send device rules with an update that lack what we gave, and crun applies them.
SafeUpdate keep_devices(const std::vector<std::string>& arguments, const oci::CommandLine& line,
                        const ledger::Entry& given);

// Restores access that was lost all the same, by the holdfast beside our own program. False: it could not. Standard
// input and output are lost.
bool heal_container(const std::string& container, const std::string& own_program);

}  // namespace hf::shim
