// PrivateTmpfs: an empty file system that is mounted nowhere. No other process can find it, or race for a name in it.
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "kernel/fd.h"

namespace hf::kernel {

enum class Nodes : std::uint8_t { work, do_not };  // may device nodes in it be opened?

// Its root directory. It goes with the last descriptor.
Result<Fd> make_private_tmpfs(const char* size, Nodes nodes);

}  // namespace hf::kernel
