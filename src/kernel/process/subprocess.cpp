#include "kernel/process/subprocess.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/files/fd.h"
#include "kernel/process/arguments.h"
#include "kernel/process/child.h"

namespace hf::kernel {
namespace {

using Clock = std::chrono::steady_clock;

void write_all(int file, const std::string& text) {
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::write(file, text.data() + sent, text.size() - sent);
    if (count <= 0) {
      return;
    }
    sent += std::size_t(count);
  }
}

void silence(int file) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) {
    ::dup2(null, file);
    ::close(null);
  }
}

Result<std::string> read_until(int file, Clock::time_point deadline, const std::string& what) {
  std::string text;
  std::array<char, 16384> buffer;
  while (text.size() < kMostSubprocessOutput) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waiting{file, POLLIN, 0};
    const int ready = left > 0 ? ::poll(&waiting, 1, int(left)) : 0;
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    if (ready <= 0) {
      return fail(std::errc::timed_out, what + ": no answer in time");
    }
    const ssize_t count = ::read(file, buffer.data(), buffer.size());
    if (count <= 0) {
      break;
    }
    text.append(buffer.data(), std::size_t(count));
  }
  return text;
}

Result<std::string> run_child(const std::function<void(int)>& body, std::chrono::milliseconds limit,
                              const std::string& what) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0) {
    return fail_errno(errno, what);
  }
  const Fd ours(ends[0]);
  Fd theirs(ends[1]);
  Child child = Child::start([&] { body(theirs.get()); });
  if (!child) {
    return fail_errno(errno, what);
  }
  theirs = Fd();
  Result<std::string> text = read_until(ours.get(), Clock::now() + limit, what);
  const int status = child.end(text ? Child::Grace::short_wait : Child::Grace::none);
  if (text && status != 0) {
    return fail(std::errc::interrupted,
                what + ": it failed" +
                    (WIFSIGNALED(status) ? " (signal " + std::to_string(WTERMSIG(status)) + ")" : std::string()));
  }
  return text;
}

}  // namespace

Result<std::string> run_in_subprocess(const std::function<std::string()>& work, std::chrono::milliseconds limit) {
  return run_child(
      [&work](int file) {
        silence(STDOUT_FILENO);  // libraries may write to them
        silence(STDERR_FILENO);
        write_all(file, work());
      },
      limit, "ask a library");
}

Result<std::string> run_result_in_subprocess(const std::function<Result<std::string>(int output)>& work,
                                             std::chrono::milliseconds limit) {
  const std::string answer = TRY(run_child(
      [&work](int file) {
        const Result<std::string> done = work(file);
        write_all(file, done ? "+" + *done : "-" + std::to_string(int(done.error().code)) + " " + done.error().message);
      },
      limit, "wait for a child process"));
  if (!answer.starts_with('-')) {
    return answer.empty() ? answer : answer.substr(1);
  }
  const std::size_t blank = answer.find(' ');
  const auto number = parse_number<std::uint32_t>(std::string_view(answer).substr(1, blank - 1));
  return fail(std::errc(int(number.value_or(EIO))), blank == std::string::npos ? answer : answer.substr(blank + 1));
}

Result<std::string> run_program(const Host& host, const std::string& path, const std::vector<std::string>& arguments,
                                std::chrono::milliseconds limit) {
  struct stat status{};
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_MAGICLINKS;  // not through /proc/PID/root and the like
  const Fd program(int(::syscall(SYS_openat2, host.root.get(), below_root(path).c_str(), &how, sizeof(how))));
  if (!program || ::fstat(program.get(), &status) < 0) {
    return fail_errno(errno, "run " + path);
  }
  if (!S_ISREG(status.st_mode) || status.st_uid != 0 || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail(std::errc::permission_denied, "run " + path + ": others than root may write it");
  }
  return run_child(
      [&](int file) {
        // Executes the file that was checked, even if its path names another one by now. The interpreter of a script
        // opens the descriptor once more.
        const int checked = ::fcntl(program.get(), F_DUPFD, 10);
        std::vector<std::string> all = {path};
        all.insert(all.end(), arguments.begin(), arguments.end());
        const Arguments list(std::move(all));
        std::array<char*, 1> environment = {nullptr};
        silence(STDIN_FILENO);
        ::dup2(file, STDOUT_FILENO);
        silence(STDERR_FILENO);
        ::syscall(SYS_execveat, checked, "", list.get(), environment.data(), AT_EMPTY_PATH);
        ::_exit(127);
      },
      limit, "run " + path);
}

}  // namespace hf::kernel
