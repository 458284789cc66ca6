// CommandPool: many programs side by side in one thread: a limited number at a time, each with a deadline and a limit
// for its output.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hf::kernel {

struct PoolLimits {
  std::size_t at_once = 32;
  std::chrono::milliseconds time{20'000};  // of each
  std::size_t output = std::size_t(8) << 20U;
};

struct CommandEnd {
  enum class Kind : std::uint8_t { ended, timed_out, too_long, not_started };

  Kind kind = Kind::ended;
  int status = 0;      // of waitpid(2), where it ended by itself
  std::string output;  // its standard output
  std::string errors;  // the end of its standard error, or why it was not started
};

struct PoolTasks {
  std::size_t count = 0;
  std::function<std::vector<std::string>(std::size_t)> arguments_of;  // the first is the program's path
  std::function<void(std::size_t, CommandEnd)> ended;
  std::function<void()> waited;  // several times a second
};

// Returns when all have ended or were killed with their process groups.
void run_side_by_side(const PoolTasks& tasks, const PoolLimits& limits);

}  // namespace hf::kernel
