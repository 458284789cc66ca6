#include "services/shim/low_level.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/process/arguments.h"

namespace hf::shim {
namespace {

// Engines start us with little or no PATH.
constexpr std::array<std::string_view, 6> kDefaultDirectories = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                                                 "/usr/bin",        "/sbin",          "/bin"};

// Is it an executable file other than this program itself?
bool is_program(const std::string& path) {
  struct stat file{};
  struct stat own{};
  if (::stat(path.c_str(), &file) < 0 || !S_ISREG(file.st_mode) || ::access(path.c_str(), X_OK) < 0) {
    return false;
  }
  return ::stat("/proc/self/exe", &own) < 0 || file.st_dev != own.st_dev || file.st_ino != own.st_ino;
}

std::string find(const std::string& name) {
  if (name.starts_with('/')) {
    return is_program(name) ? name : std::string();
  }
  const char* const variable = ::getenv("PATH");
  std::vector<std::string_view> directories = split(std::string_view(variable == nullptr ? "" : variable), ':');
  directories.insert(directories.end(), kDefaultDirectories.begin(), kDefaultDirectories.end());
  for (const std::string_view directory : directories) {
    std::string path = std::string(directory) + "/" + name;
    if (directory.starts_with('/') && is_program(path)) {
      return path;
    }
  }
  return {};
}

std::vector<std::string> argv_of(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> argv = {program};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return argv;
}

// vfork shares our memory with the child until it executes: a copy would take longer than everything done before. The
// child changes nothing of ours until then. NOLINTBEGIN(bugprone-unsafe-functions,clang-analyzer-*): posix_spawn
// cannot set a parent-death signal
pid_t start_child(const char* program, char* const* argv) {
  constexpr int kCannotStart = 127;
  const pid_t child = ::vfork();
  if (child == 0) {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a signal that kills us is meant for both
    ::execv(program, argv);
    ::_exit(kCannotStart);
  }
  return child;
}
// NOLINTEND(bugprone-unsafe-functions,clang-analyzer-*)

volatile std::sig_atomic_t g_child = 0;

void forward_signal(int signal) {
  if (g_child > 0) {
    ::kill(pid_t(g_child), signal);
  }
}

}  // namespace

Result<std::string> find_low_level(const std::vector<std::string>& programs) {
  for (const std::string& name : programs) {
    std::string path = find(name);
    if (!path.empty()) {
      return path;
    }
  }
  return fail(std::errc::no_such_file_or_directory,
              "none of " + join(programs, ", ") + " is installed here (runtime.programs in /etc/holdfast/config.yaml)");
}

std::unexpected<Error> exec_program(const std::string& program, const std::vector<std::string>& arguments) {
  const kernel::Arguments argv(argv_of(program, arguments));
  ::execv(program.c_str(), argv.get());
  return fail_errno(errno, "start " + program);
}

Result<int> run_to_end(const std::string& program, const std::vector<std::string>& arguments) {
  const kernel::Arguments argv(argv_of(program, arguments));
  const pid_t child = start_child(program.c_str(), argv.get());
  if (child < 0) {
    return fail_errno(errno, "start " + program);
  }
  g_child = child;
  struct sigaction action{};
  action.sa_handler = forward_signal;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    ::sigaction(signal, &action, nullptr);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      return fail_errno(errno, "wait for " + program);
    }
  }
  g_child = 0;
  constexpr int kSignalled = 128;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
}

}  // namespace hf::shim
