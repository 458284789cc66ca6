// Subprocess: runs work that may hang, crash or use too much memory in a child process with a time limit.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "kernel/files/host.h"

namespace hf::kernel {

inline constexpr std::size_t kMostSubprocessOutput = 1 << 20;  // bytes; the rest is not read

// Returns the text of a function that runs in a child process. Fails with timed_out when it takes too long, and kills
// it.
Result<std::string> run_in_subprocess(const std::function<std::string()>& work, std::chrono::milliseconds limit);

// The same for work that can fail: returns its text or its error. A child that executes another program may pass it
// `output` as its standard output; the parent then waits until the program ends.
Result<std::string> run_result_in_subprocess(const std::function<Result<std::string>(int output)>& work,
                                             std::chrono::milliseconds limit);

// Returns the standard output of a program of the host. The program must be owned by root, and is given by its path.
Result<std::string> run_program(const Host& host, const std::string& path, const std::vector<std::string>& arguments,
                                std::chrono::milliseconds limit);

}  // namespace hf::kernel
