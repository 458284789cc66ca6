#include "kernel/child.h"

#include <csignal>
#include <utility>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hf::kernel {
namespace {

constexpr int kShortWaitMs = 200;
constexpr int kLastWaitMs = 1000;  // a process stuck in the kernel may not die: it is left to init then

bool has_ended(pid_t pid, int milliseconds, int& status) {
  for (int waited = 0;; ++waited) {
    const pid_t done = ::waitpid(pid, &status, WNOHANG);
    if (done != 0) {
      return true;
    }
    if (waited >= milliseconds) {
      return false;
    }
    ::usleep(waited < 10 ? 100 : 1000);  // usually it has ended already
  }
}

}  // namespace

Child Child::start(const std::function<void()>& body) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    // It may give up capabilities while it holds descriptors of ours, or be seen in a container's pid namespace:
    // nothing in there may look into it.
    ::prctl(PR_SET_DUMPABLE, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent) {
      body();
    }
    ::_exit(0);
  }
  return Child(pid);
}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}

Child::~Child() { end(Patience::none); }

int Child::end(Patience patience) {
  if (pid_ <= 0) {
    return 0;
  }
  int status = 0;
  if (patience == Patience::none || !has_ended(pid_, kShortWaitMs, status)) {
    ::kill(pid_, SIGKILL);
    has_ended(pid_, kLastWaitMs, status);
  }
  pid_ = -1;
  return status;
}

}  // namespace hf::kernel
