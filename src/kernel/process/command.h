// Command: a program of the host, run as a child that ends with its parent. The parent never waits for it without a
// limit.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "core/base/result.h"
#include "core/container/cgroup/cgroup_path.h"
#include "kernel/files/fd.h"

namespace hf::kernel {

struct Command {
  std::vector<std::string> arguments;    // the first is the program's path
  std::vector<std::string> environment;  // "NAME=value", in addition to our own
  std::string directory;                 // its working directory; "": ours
  int input = -1;                        // its standard input; -1: /dev/null
  std::function<bool()> before;          // runs in the child before the program; false: it failed
};

// It runs in a process group of its own, so that only the parent receives a terminal's Ctrl-C, with no signal blocked.
class Running {
 public:
  static Result<Running> start(const Command& command);

  Running(Running&& other) noexcept;
  Running& operator=(Running&&) = delete;
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running();  // kills it

  [[nodiscard]] container::Pid pid() const { return {pid_}; }
  // Has it ended? Waits at most that long.
  bool ends_within(std::chrono::milliseconds limit);
  [[nodiscard]] int status() const { return status_; }  // of waitpid(2), once it has ended
  void signal(int number) const;
  [[nodiscard]] std::string output() const;  // of it and its children so far; only the end where it is long

 private:
  Running(pid_t pid, Fd output) : pid_(pid), output_(std::move(output)) {}

  pid_t pid_;
  Fd output_;
  bool has_ended_ = false;
  int status_ = 0;
};

// Returns the output of a program. If the program fails, the error is its last line; timed_out if it takes too long.
Result<std::string> run(const Command& command, std::chrono::milliseconds limit);

// The path of a program in $PATH; "" where there is none.
std::string find_program(const std::string& name);

// Checks a program that other programs will run as root: an absolute path of an executable file that only root may
// write.
Result<void> check_trusted_program(const std::string& path);
std::string own_path();  // the path of the running program

}  // namespace hf::kernel
