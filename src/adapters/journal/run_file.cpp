#include "adapters/journal/run_file.h"

#include <cerrno>
#include <limits>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "kernel/files/clock.h"
#include "kernel/process/process.h"

namespace hf::journal {

namespace {

constexpr const char* kDirectory = "run/holdfast";
constexpr const char* kHostLock = "holdfastd.lock";
constexpr std::chrono::seconds kLongestSilence{120};

Result<kernel::Fd> open_run_directory(const kernel::Host& host) {
  if (::mkdirat(host.root.get(), kDirectory, 0755) < 0 && errno != EEXIST) {
    return fail_errno(errno, std::string("make /") + kDirectory);
  }
  return kernel::open_plain_directory(host.root.get(), kDirectory);
}

Result<RunningProgram> read_program(const kernel::Host& host, const char* file) {
  const std::string text = TRY(kernel::read_trusted_file(host.root.get(), kernel::below_root(file)));
  return parse_program(TRY(document::parse_object(text, file)), file);
}

bool is_alive(const kernel::Host& host, const char* file, const RunningProgram& program) {
  return is_running(host, program) && has_heartbeat(host, file);
}

}  // namespace

RunningProgram own_program(const kernel::Host& host, const std::string& version) {
  const container::Pid own{::getpid()};
  const Result<kernel::Process> process = kernel::read_process(host, own);
  return {own, process ? process->started_at : 0, version};
}

bool is_running(const kernel::Host& host, const RunningProgram& program) {
  const Result<kernel::Process> process = kernel::read_process(host, program.pid);
  return process && process->started_at == program.started_ticks && !process->has_ended;
}

document::OrderedJson to_json(const RunningProgram& program) {
  return {{"version", 1},
          {"pid", program.pid.value},
          {"started_ticks", program.started_ticks},
          {"program_version", program.version}};
}

Result<RunningProgram> parse_program(const document::Json& json, const char* file) {
  constexpr std::uint64_t kLastPid = std::numeric_limits<std::int32_t>::max();
  constexpr std::uint64_t kLastTick = std::numeric_limits<std::int64_t>::max();
  RunningProgram program;
  program.pid.value = std::int32_t(TRY(document::require_uint(json, "pid", kLastPid, {file})));
  program.started_ticks = std::int64_t(TRY(document::require_uint(json, "started_ticks", kLastTick, {file})));
  program.version = TRY(document::require_string(json, "program_version", {file}));
  return program;
}

Result<void> write_run_file(const kernel::Host& host, const std::string& name, const std::string& text) {
  const kernel::Fd directory = TRY(open_run_directory(host));
  return kernel::replace_file(directory.get(), name, {text});
}

bool renew_run_file(const kernel::Host& host, const char* file) {
  const Result<RunningProgram> program = read_program(host, file);
  if (program && program->pid.value == ::getpid() && is_running(host, *program)) {
    return ::utimensat(host.root.get(), kernel::below_root(file).c_str(), nullptr, AT_SYMLINK_NOFOLLOW) == 0;
  }
  return program && is_alive(host, file, *program);
}

void remove_run_file(const kernel::Host& host, const char* file) {
  const Result<RunningProgram> program = read_program(host, file);
  if (!program || program->pid.value == ::getpid() || !is_alive(host, file, *program)) {
    (void)::unlinkat(host.root.get(), kernel::below_root(file).c_str(), 0);
  }
}

bool has_heartbeat(const kernel::Host& host, const char* file) {
  struct stat status{};
  return ::fstatat(host.root.get(), kernel::below_root(file).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         std::chrono::milliseconds(kernel::wall_now()) <= std::chrono::seconds(status.st_mtim.tv_sec) + kLongestSilence;
}

std::optional<std::string> find_problem(const kernel::Host& host, const char* file, const std::string& name) {
  const Result<RunningProgram> program = read_program(host, file);
  if (!program && program.error().code != std::errc::no_such_file_or_directory) {
    return program.error().message;
  }
  if (!program || !is_running(host, *program)) {
    return name + " does not run";
  }
  if (!has_heartbeat(host, file)) {
    return name + " hangs: no heartbeat of process " + std::to_string(program->pid.value) + " for over " +
           std::to_string(kLongestSilence.count()) + " s";
  }
  return std::nullopt;
}

Result<kernel::Fd> lock_file(int directory, const std::string& name, const std::string& holder) {
  while (true) {
    kernel::Fd file(::openat(directory, name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    struct stat status{};
    if (!file) {
      return fail_errno(errno, "open " + name);
    }
    struct flock lock{};
    lock.l_type = F_WRLCK;
    if (::fcntl(file.get(), F_SETLK, &lock) < 0) {
      const bool is_held = ::fcntl(file.get(), F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
      return fail(
          std::errc::device_or_resource_busy,
          holder + " runs already (pid " + (is_held ? std::to_string(lock.l_pid) : std::string("unknown")) + ")");
    }
    if (::fstat(file.get(), &status) == 0 && status.st_nlink > 0) {
      return file;
    }
    // The one that held it has ended, and removed the file after it was opened here.
  }
}

Result<kernel::Fd> lock_host(const kernel::Host& host) {
  const kernel::Fd directory = TRY(open_run_directory(host));
  return lock_file(directory.get(), kHostLock, "holdfastd");
}

std::optional<container::Pid> holder_of_host_lock(const kernel::Host& host) {
  const std::string path = std::string(kDirectory) + "/" + kHostLock;
  const kernel::Fd file(::openat(host.root.get(), path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct flock lock{};
  lock.l_type = F_WRLCK;
  const bool is_held = file && ::fcntl(file.get(), F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  return is_held ? std::optional(container::Pid{lock.l_pid}) : std::nullopt;
}

void remove_host_lock(const kernel::Host& host) {
  (void)::unlinkat(host.root.get(), (std::string(kDirectory) + "/" + kHostLock).c_str(), 0);
  (void)::unlinkat(host.root.get(), kDirectory, AT_REMOVEDIR);  // where nothing else is in it
}

}  // namespace hf::journal
