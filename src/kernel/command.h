// Command: a program of the host, run as a child that ends with us, and is never waited for without end.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "core/base/result.h"
#include "core/container/cgroup_path.h"
#include "kernel/fd.h"

namespace hf::kernel {

struct Command {
  std::vector<std::string> words;        // the program's path first
  std::vector<std::string> environment;  // "NAME=value", beside what we have ourselves
  std::string folder;                    // where it works; "" where we do
  int input = -1;                        // its standard input; -1: nothing to read
  std::function<bool()> before;          // in the child, before the program; false: it could not be done
};

// In a process group of its own, so that a terminal's Ctrl-C is ours to answer, and with no signal blocked.
class Running {
 public:
  static Result<Running> start(const Command& command);

  Running(Running&& other) noexcept;
  Running& operator=(Running&&) = delete;
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running();  // kills it

  [[nodiscard]] container::Pid pid() const { return {pid_}; }
  // Has it ended? Waits that long for it.
  bool ends_within(std::chrono::milliseconds limit);
  [[nodiscard]] int status() const { return status_; }  // of waitpid(2), once it has ended
  void signal(int number) const;
  [[nodiscard]] std::string output() const;  // what it and its children wrote so far, the end of it where it is long

 private:
  Running(pid_t pid, Fd output) : pid_(pid), output_(std::move(output)) {}

  pid_t pid_;
  Fd output_;
  bool has_ended_ = false;
  int status_ = 0;
};

// What a program wrote; fails with its last line where it fails, and with timed_out where it takes too long.
Result<std::string> run(const Command& command, std::chrono::milliseconds limit);

// The path of a program in the folders of $PATH; "" where there is none.
std::string find_program(const std::string& name);

// A program that others will run as root: an absolute path, executable, of root's, and nobody else may write it.
Result<void> check_trusted_program(const std::string& path);
std::string own_path();  // of the program that runs now

}  // namespace hf::kernel
