#include "kernel/process/child.h"

#include <csignal>
#include <utility>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hf::kernel {
namespace {

constexpr int kShortWaitMs = 200;
constexpr int kLastWaitMs = 1000;  // a process stuck in the kernel may not die; init reaps it later

bool has_ended(pid_t pid, int milliseconds, int& status) {
  for (int waited = 0;; ++waited) {
    const pid_t done = ::waitpid(pid, &status, WNOHANG);
    if (done != 0) {
      return true;
    }
    if (waited >= milliseconds) {
      return false;
    }
    ::usleep(waited < 10 ? 100 : 1000);  // mostly it has ended already
  }
}

}  // namespace

Child Child::start(const std::function<void()>& body) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    // The child may give up capabilities while it holds our descriptors, or be visible in a container's pid namespace.
    // No process there may read its memory.
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

Child::~Child() { end(Grace::none); }

int Child::end(Grace grace) {
  if (pid_ <= 0) {
    return 0;
  }
  int status = 0;
  if (grace == Grace::none || !has_ended(pid_, kShortWaitMs, status)) {
    ::kill(pid_, SIGKILL);
    has_ended(pid_, kLastWaitMs, status);
  }
  pid_ = -1;
  return status;
}

}  // namespace hf::kernel
