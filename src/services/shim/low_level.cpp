#include "services/shim/low_level.h"

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/arguments.h"
#include "services/shim/usual.h"

namespace hf::shim {
namespace {

std::string find(const std::string& name) {
  if (name.starts_with('/')) {
    return is_program(name.c_str()) ? name : std::string();
  }
  std::array<char, PATH_MAX> place{};
  return find_in_path(::getenv("PATH"), name, place) ? std::string(place.data()) : std::string();
}

std::vector<std::string> behind(const std::string& program, const std::vector<std::string>& words) {
  std::vector<std::string> all = {program};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

// Our memory is lent to it until it is the other program: to copy it would take longer than all that we did before.
// Until then it changes nothing of ours. NOLINTBEGIN(bugprone-unsafe-functions,clang-analyzer-*): posix_spawn
// knows no signal of a parent's death
pid_t start_child(const char* program, char* const* arguments) {
  constexpr int kCannotStart = 127;
  const pid_t child = ::vfork();
  if (child == 0) {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);  // whoever ends us means both
    ::execv(program, arguments);
    ::_exit(kCannotStart);
  }
  return child;
}
// NOLINTEND(bugprone-unsafe-functions,clang-analyzer-*)

volatile std::sig_atomic_t g_child = 0;

void hand_on(int signal) {
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

std::unexpected<Error> become(const std::string& program, const std::vector<std::string>& words) {
  const kernel::Arguments arguments(behind(program, words));
  ::execv(program.c_str(), arguments.get());
  return fail_errno(errno, "start " + program);
}

Result<int> run_to_end(const std::string& program, const std::vector<std::string>& words) {
  const kernel::Arguments arguments(behind(program, words));
  const pid_t child = start_child(program.c_str(), arguments.get());
  if (child < 0) {
    return fail_errno(errno, "start " + program);
  }
  g_child = child;
  struct sigaction action{};
  action.sa_handler = hand_on;
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
