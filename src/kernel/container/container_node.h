// ContainerNode: creates device nodes in a running container's file system.
#pragma once

#include <chrono>

#include "core/base/result.h"
#include "kernel/container/container_handle.h"
#include "kernel/files/device_node.h"
#include "kernel/files/host.h"

namespace hf::kernel {

// Creates or replaces a device node at this path of the container, atomically. It replaces a device node, a regular
// file, a symlink or an empty directory. A child process does it, with few capabilities and a deadline. Fails where a
// parent directory is a symlink, where the first process has changed its root, and where the directory belongs to the
// host: a volume, or the host's /dev.
Result<void> make_node_in(const Host& host, const ContainerHandle& container, const NewNode& node,
                          std::chrono::milliseconds limit);

}  // namespace hf::kernel
