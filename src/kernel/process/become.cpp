#include "kernel/process/become.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "kernel/process/arguments.h"

namespace hf::kernel {
namespace {

std::vector<std::string> environment_with(const std::vector<std::string>& more) {
  std::vector<std::string> all = more;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    if (std::ranges::none_of(more, [name](const std::string& variable) { return variable.starts_with(name); })) {
      all.emplace_back(text);
    }
  }
  return all;
}

}  // namespace

void become(const Command& command, const ChildStreams& streams) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int input = command.input >= 0 ? command.input : ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (::getppid() != streams.parent || input < 0 || streams.output < 0 || streams.errors < 0) {
    ::_exit(kCannotStart);
  }
  sigset_t none{};
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  ::setpgid(0, 0);
  ::dup2(input, STDIN_FILENO);
  ::dup2(streams.output, STDOUT_FILENO);
  ::dup2(streams.errors, STDERR_FILENO);
  const bool is_there = command.directory.empty() || ::chdir(command.directory.c_str()) == 0;
  if (is_there && (!command.before || command.before())) {
    const Arguments arguments(command.arguments);
    const Arguments environment(environment_with(command.environment));
    ::execve(arguments.program(), arguments.get(), environment.get());
  }
  ::dprintf(STDERR_FILENO, "%s\n", fail_errno(errno, "start it").error().message.c_str());
  ::_exit(kCannotStart);
}

}  // namespace hf::kernel
