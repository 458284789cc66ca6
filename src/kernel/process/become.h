// Become: what a forked child does to become a program.
#pragma once

#include <sys/types.h>

#include "kernel/process/command.h"

namespace hf::kernel {

inline constexpr int kCannotStart = 127;  // the exit code of a child whose program cannot be started

// In the child: dies with `parent`, gets a process group of its own, its standard streams, and becomes the program.
struct ChildStreams {
  pid_t parent = 0;
  int output = -1;
  int errors = -1;  // may be the same as `output`
};
[[noreturn]] void become(const Command& command, const ChildStreams& streams);

}  // namespace hf::kernel
