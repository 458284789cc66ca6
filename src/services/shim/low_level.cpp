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

namespace hf::shim {
namespace {

// Engines start us with little or no PATH.
constexpr std::array<std::string_view, 6> kUsualFolders = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                                           "/usr/bin",        "/sbin",          "/bin"};

bool is_program(const std::string& path) {
  struct stat file{};
  struct stat ourselves{};
  if (::stat(path.c_str(), &file) < 0 || !S_ISREG(file.st_mode) || ::access(path.c_str(), X_OK) < 0) {
    return false;
  }
  const bool is_ours =
      ::stat("/proc/self/exe", &ourselves) == 0 && file.st_dev == ourselves.st_dev && file.st_ino == ourselves.st_ino;
  return !is_ours;
}

std::string find(const std::string& name) {
  if (name.starts_with('/')) {
    return is_program(name) ? name : std::string();
  }
  const char* path = ::getenv("PATH");
  for (const std::string_view folder : split(std::string_view(path == nullptr ? "" : path), ':')) {
    const std::string place = std::string(folder) + "/" + name;
    if (folder.starts_with('/') && is_program(place)) {
      return place;
    }
  }
  for (const std::string_view folder : kUsualFolders) {
    const std::string place = std::string(folder) + "/" + name;
    if (is_program(place)) {
      return place;
    }
  }
  return {};
}

std::vector<char*> arguments_of(const std::string& program, std::vector<std::string>& words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 2);
  arguments.push_back(const_cast<char*>(program.c_str()));  // NOLINT(cppcoreguidelines-pro-type-const-cast): execve's
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  return arguments;
}

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
  std::vector<std::string> copy = words;
  const std::vector<char*> arguments = arguments_of(program, copy);
  ::execv(program.c_str(), arguments.data());
  return fail_errno(errno, "start " + program);
}

Result<int> run_to_end(const std::string& program, const std::vector<std::string>& words) {
  const pid_t child = ::fork();
  if (child < 0) {
    return fail_errno(errno, "start " + program);
  }
  if (child == 0) {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);  // whoever ends us means both
    (void)become(program, words);
    constexpr int kCannotStart = 127;
    ::_exit(kCannotStart);
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
