// Lock: flock(2) with a limit. It ends with the last descriptor of the opened file.
#pragma once

#include <chrono>

#include "core/base/result.h"
#include "kernel/files/fd.h"

namespace hf::kernel {

// `file` may be a directory. Fails with timed_out where another process holds the lock for longer than the limit.
Result<void> lock_within(const Fd& file, std::chrono::milliseconds limit);

}  // namespace hf::kernel
