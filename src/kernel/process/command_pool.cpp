#include "kernel/process/command_pool.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <list>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/result.h"
#include "kernel/files/fd.h"
#include "kernel/process/become.h"
#include "kernel/process/command.h"

namespace hf::kernel {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostErrors = 4096;              // bytes
constexpr std::chrono::milliseconds kLongestWait{50};  // a program may end while its children hold the pipes open
constexpr std::chrono::milliseconds kTimeToDie{1000};  // a process stuck in the kernel may not die; init reaps it

struct Pipe {
  Fd ours;
  Fd theirs;
};

std::optional<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0) {
    return std::nullopt;
  }
  Pipe pipe{Fd(ends[0]), Fd(ends[1])};
  ::fcntl(pipe.ours.get(), F_SETFL, O_NONBLOCK);  // ours alone: the program's end blocks as programs expect
  return pipe;
}

struct Started {
  std::size_t index = 0;
  pid_t pid = -1;
  Fd output;
  Fd errors;
  Clock::time_point deadline;
  bool is_killed = false;
  CommandEnd end;
};

// What is there now; closes the descriptor at its end.
void read_available(Fd& file, std::string& text, std::size_t most) {
  std::array<char, 16384> buffer;
  while (file && text.size() <= most) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count > 0) {
      text.append(buffer.data(), std::size_t(count));
    } else if (count == 0 || errno != EINTR) {
      if (count == 0 || errno != EAGAIN) {
        file = Fd();
      }
      return;
    }
  }
}

// Only the end of it is kept: programs write the reason last.
void read_errors(Started& one) {
  std::string text;
  read_available(one.errors, text, 16 * kMostErrors);
  one.end.errors += text;
  if (one.end.errors.size() > kMostErrors) {
    one.end.errors.erase(0, one.end.errors.size() - kMostErrors);
  }
}

void kill_group(Started& one, CommandEnd::Kind kind) {
  ::kill(-one.pid, SIGKILL);
  ::kill(one.pid, SIGKILL);
  one.is_killed = true;
  one.end.kind = kind;
  one.end.output.clear();
  one.deadline = Clock::now() + kTimeToDie;
}

bool has_ended(pid_t pid) {
  siginfo_t about{};
  const int result = ::waitid(P_PID, id_t(pid), &about, WEXITED | WNOHANG | WNOWAIT);
  return result < 0 || about.si_pid == pid;
}

class Pool {
 public:
  Pool(const PoolTasks& tasks, const PoolLimits& limits) : tasks_(tasks), limits_(limits) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    for (Started& one : running_) {
      kill_group(one, CommandEnd::Kind::timed_out);
    }
  }

  void run() {
    while (next_ < tasks_.count || !running_.empty()) {
      while (next_ < tasks_.count && running_.size() < std::max<std::size_t>(1, limits_.at_once)) {
        start(next_++);
      }
      wait();
      sweep();
      if (tasks_.waited) {
        tasks_.waited();
      }
    }
  }

 private:
  void start(std::size_t index) {
    std::optional<Pipe> output = make_pipe();
    std::optional<Pipe> errors = make_pipe();
    const Command command{.arguments = tasks_.arguments_of(index), .environment = {}, .directory = {}, .before = {}};
    const pid_t parent = ::getpid();
    const pid_t pid = output && errors ? ::fork() : -1;
    if (pid < 0) {
      CommandEnd end;
      end.kind = CommandEnd::Kind::not_started;
      end.errors = fail_errno(errno, "start " + command.arguments.front()).error().message;
      tasks_.ended(index, std::move(end));
      return;
    }
    if (pid == 0) {
      become(command, {parent, output->theirs.get(), errors->theirs.get()});
    }
    ::setpgid(pid, pid);  // the child does it as well: whichever comes first
    running_.push_back({.index = index,
                        .pid = pid,
                        .output = std::move(output->ours),
                        .errors = std::move(errors->ours),
                        .deadline = Clock::now() + limits_.time,
                        .end = {}});
  }

  void wait() {
    std::vector<pollfd> waiting;
    const Clock::time_point now = Clock::now();
    Clock::time_point until = now + kLongestWait;
    for (const Started& one : running_) {
      const bool is_ending = !one.output && !one.errors;
      until = std::min(until, is_ending ? now + std::chrono::milliseconds(1) : one.deadline);
      for (const Fd* file : {&one.output, &one.errors}) {
        if (*file && !one.is_killed) {
          waiting.push_back({file->get(), POLLIN, 0});
        }
      }
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - now).count();
    ::poll(waiting.data(), waiting.size(), int(std::clamp<std::int64_t>(left, 0, kLongestWait.count())));
  }

  void sweep() {
    for (auto one = running_.begin(); one != running_.end();) {
      if (advance(*one)) {
        const std::size_t index = one->index;
        CommandEnd end = std::move(one->end);
        one = running_.erase(one);
        tasks_.ended(index, std::move(end));
      } else {
        ++one;
      }
    }
  }

  // Has it ended?
  bool advance(Started& one) {
    const bool is_gone = has_ended(one.pid);  // before the last read, which then has all of it
    if (!one.is_killed) {
      read_available(one.output, one.end.output, limits_.output);
      read_errors(one);
      if (one.end.output.size() > limits_.output) {
        kill_group(one, CommandEnd::Kind::too_long);
      }
    }
    if (is_gone) {
      ::kill(-one.pid, SIGKILL);  // what it started and left behind; until it is reaped, no other group has its number
      ::waitpid(one.pid, &one.end.status, WNOHANG);
      return true;
    }
    if (Clock::now() < one.deadline) {
      return false;
    }
    if (one.is_killed) {
      return true;
    }
    kill_group(one, CommandEnd::Kind::timed_out);
    return false;
  }

  const PoolTasks& tasks_;
  const PoolLimits& limits_;
  std::list<Started> running_;
  std::size_t next_ = 0;
};

}  // namespace

void run_side_by_side(const PoolTasks& tasks, const PoolLimits& limits) { Pool(tasks, limits).run(); }

}  // namespace hf::kernel
