// HostNode: nodes of the host's own /dev that ought to be there, and the modules behind them.
#pragma once

#include <string>

#include "core/base/result.h"
#include "kernel/device_node.h"
#include "kernel/host.h"

namespace hf::kernel {

// A node with other numbers is replaced, by rename: whoever opens it meanwhile finds the old or the new one. Anything
// that is no node stays, and is an error. Folders on the way are made.
Result<void> make_host_node(const Host& host, const NewNode& node);

// Loads a module of the running kernel by the host's modprobe.
Result<void> load_module(const std::string& name);

}  // namespace hf::kernel
