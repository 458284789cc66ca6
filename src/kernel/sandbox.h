// Sandbox: work in a root file system that an image filled. A child process does it, in its own mount namespace: that
// file system is its root, procfs and sysfs are not in it (their magic links lead out of any root), capabilities are
// gone, a seccomp filter refuses what reaches beyond files, and a deadline ends it.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "kernel/fd.h"

namespace hf::kernel {

// The text that `work` returns, or its error. "/" is `root` for it.
Result<std::string> run_in_sandbox(int root, const std::function<Result<std::string>()>& work,
                                   std::chrono::milliseconds limit);

// A statically linked program of the host, to which everything is read-only and noexec but an empty directory: what it
// leaves there is returned. No program and no library of the image is executed.
struct SandboxedProgram {
  const Fd& program;
  std::function<std::vector<std::string>(const std::string& result)> arguments;  // `result`: the file it is to write
};
Result<std::string> run_program_in_sandbox(int root, const SandboxedProgram& program, std::chrono::milliseconds limit);

// Is it a program that needs no interpreter, and so executes nothing of the file system it runs in?
bool is_static_program(const Fd& file);

}  // namespace hf::kernel
