// PrivateTmpfs: an empty file system that is not mounted anywhere. No other process can find it or race for a name in
// it.
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "kernel/files/fd.h"

namespace hf::kernel {

enum class DeviceNodes : std::uint8_t { usable, blocked };  // blocked: device nodes in it cannot be opened (nodev)

// Returns its root directory. The file system is freed with its last descriptor.
Result<Fd> make_private_tmpfs(const char* size, DeviceNodes nodes);

}  // namespace hf::kernel
