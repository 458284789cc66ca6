// Sandbox: runs work in a root file system with the untrusted content of an image. A child process does it in its own
// mount namespace: that file system is its root, procfs and sysfs are unmounted (their magic links lead out of any
// root), capabilities are dropped, a seccomp filter refuses all but file access, and a deadline ends it.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "kernel/files/fd.h"

namespace hf::kernel {

// Returns the text of `work`, or its error. `work` runs with `root` as "/".
Result<std::string> run_in_sandbox(int root, const std::function<Result<std::string>()>& work,
                                   std::chrono::milliseconds limit);

// A statically linked program of the host, for which everything is mounted read-only and noexec, except an empty
// directory for its result file, whose text is returned. No program and no library of the image is executed.
struct SandboxedProgram {
  const Fd& program;
  std::function<std::vector<std::string>(const std::string& result)> arguments;  // `result`: the file to write
};
Result<std::string> run_program_in_sandbox(int root, const SandboxedProgram& program, std::chrono::milliseconds limit);

// Does the program need no interpreter, so that it executes nothing of the file system it runs in?
bool is_static_program(const Fd& file);

}  // namespace hf::kernel
