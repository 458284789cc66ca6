#include "kernel/process/command.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/process/become.h"

namespace hf::kernel {
namespace {

constexpr std::size_t kMostOutput = 65536;

std::string last_line_of(const std::string& text) {
  const std::string_view trimmed = trim(text);
  return std::string(trimmed.substr(trimmed.rfind('\n') + 1));
}

}  // namespace

Result<Running> Running::start(const Command& command) {
  Fd output(::memfd_create("output", MFD_CLOEXEC));
  if (!output || ::fcntl(output.get(), F_SETFL, O_APPEND) < 0) {
    return fail_errno(errno, "start " + command.arguments.front());
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    return fail_errno(errno, "start " + command.arguments.front());
  }
  if (pid == 0) {
    become(command, {parent, output.get(), output.get()});
  }
  return Running(pid, std::move(output));
}

Running::Running(Running&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::move(other.output_)),
      has_ended_(other.has_ended_),
      status_(other.status_) {}

Running::~Running() {
  signal(SIGKILL);
  ends_within(std::chrono::milliseconds(1000));  // a process stuck in the kernel may not die; init reaps it later
}

void Running::signal(int number) const {
  if (pid_ > 0 && !has_ended_) {
    ::kill(pid_, number);
  }
}

bool Running::ends_within(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (pid_ > 0 && !has_ended_) {
    const pid_t done = ::waitpid(pid_, &status_, WNOHANG);
    has_ended_ = done == pid_ || (done < 0 && errno == ECHILD);
    if (!has_ended_ && std::chrono::steady_clock::now() >= deadline) {
      return false;
    }
    if (!has_ended_) {
      ::usleep(500);
    }
  }
  return true;
}

std::string Running::output() const {
  struct stat status{};
  if (!output_ || ::fstat(output_.get(), &status) < 0) {
    return {};
  }
  const off_t start = std::max<off_t>(0, status.st_size - off_t(kMostOutput));
  std::string text(std::size_t(status.st_size - start), '\0');
  const ssize_t count = ::pread(output_.get(), text.data(), text.size(), start);
  text.resize(count > 0 ? std::size_t(count) : 0);
  return text;
}

Result<std::string> run(const Command& command, std::chrono::milliseconds limit) {
  Running running = TRY(Running::start(command));
  const std::string what = "run " + std::string(base_name(command.arguments.front()));
  if (!running.ends_within(limit)) {
    return fail(std::errc::timed_out, what + ": it takes too long");
  }
  std::string output = running.output();
  if (running.status() != 0) {
    return fail(std::errc::io_error, what + ": " + last_line_of(output));
  }
  return output;
}

std::string find_program(const std::string& name) {
  const char* directories = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): no thread changes it
  for (const std::string_view directory : split(std::string_view(directories == nullptr ? "" : directories), ':')) {
    const std::string path = std::string(directory) + "/" + name;
    struct stat status{};
    const bool is_program = path.starts_with('/') && ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
    if (is_program && ::access(path.c_str(), X_OK) == 0) {
      return path;
    }
  }
  return {};
}

Result<void> check_trusted_program(const std::string& path) {
  struct stat status{};
  if (!path.starts_with('/')) {
    return fail(std::errc::invalid_argument, "program " + quote(path) + ": want an absolute path");
  }
  if (::stat(path.c_str(), &status) < 0) {
    return fail_errno(errno, "program " + path);
  }
  constexpr mode_t kOthersMayWrite = S_IWGRP | S_IWOTH;
  if (!S_ISREG(status.st_mode) || (status.st_mode & S_IXUSR) == 0) {
    return fail(std::errc::permission_denied, "program " + path + ": it is no program that can be run");
  }
  if (status.st_uid != 0 || (status.st_mode & kOthersMayWrite) != 0) {
    return fail(std::errc::permission_denied, "program " + path + ": others than root may change it");
  }
  return {};
}

std::string own_path() {
  std::string path(4096, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  path.resize(length > 0 ? std::size_t(length) : 0);
  return path;
}

}  // namespace hf::kernel
