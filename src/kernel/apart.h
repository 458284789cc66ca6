// Apart: work that may hang, crash or eat memory, done by a child with a time limit.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "kernel/host.h"

namespace hf::kernel {

inline constexpr std::size_t kMostFromApart = 1 << 20;  // bytes; what comes after is not read

// The text a function returns, from a child process. Fails with timed_out when it takes too long; the child is ended.
Result<std::string> run_apart(const std::function<std::string()>& work, std::chrono::milliseconds limit);

// The same for work that can fail: its text or its error. A child that becomes another program may hand `output` on to
// it as its standard output, and is then waited for until it ends.
Result<std::string> run_result_apart(const std::function<Result<std::string>(int output)>& work,
                                     std::chrono::milliseconds limit);

// What a program of the host writes to standard output. Only root's programs are run, and only by their path.
Result<std::string> run_program(const Host& host, const std::string& path, const std::vector<std::string>& arguments,
                                std::chrono::milliseconds limit);

}  // namespace hf::kernel
