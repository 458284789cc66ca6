// Signals of a daemon, which it reads in its loop: SIGTERM and SIGINT end it, SIGHUP reads its configuration again.
#pragma once

#include <cstdint>
#include <optional>

#include "kernel/files/fd.h"

namespace hf::kernel {

enum class Signal : std::uint8_t { end, reload };

// Before the first thread starts, so that none of them is interrupted by one. SIGPIPE is blocked as well.
void block_signals();
Fd open_signals();
std::optional<Signal> read_signal(const Fd& signals);  // absent: there is no more

}  // namespace hf::kernel
