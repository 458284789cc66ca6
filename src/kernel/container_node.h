// ContainerNode: device nodes made in a running container's file system.
#pragma once

#include <chrono>

#include "core/base/result.h"
#include "kernel/container_handle.h"
#include "kernel/device_node.h"
#include "kernel/host.h"

namespace hf::kernel {

// Creates or replaces a node where the container sees this path, in one step. What is there may be a node, a regular
// file, a symlink or an empty directory. A child does it, with few capabilities and a deadline. Refused are a path with
// a symlink in it, a first process that has changed its root, and a directory that is the host's own: a volume, or its
// /dev.
Result<void> make_node_in(const Host& host, const ContainerHandle& container, const NewNode& node,
                          std::chrono::milliseconds limit);

}  // namespace hf::kernel
