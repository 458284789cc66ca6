#include "kernel/process/signals.h"

#include <csignal>
#include <initializer_list>

#include <sys/signalfd.h>
#include <unistd.h>

namespace hf::kernel {
namespace {

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set{};
  ::sigemptyset(&set);
  for (const int signal : signals) {
    ::sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

void block_signals() {
  const sigset_t set = set_of({SIGTERM, SIGINT, SIGHUP, SIGPIPE});
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

Fd open_signals() {
  const sigset_t set = set_of({SIGTERM, SIGINT, SIGHUP});
  return Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::optional<Signal> read_signal(const Fd& signals) {
  signalfd_siginfo signal{};
  if (::read(signals.get(), &signal, sizeof(signal)) != ssize_t(sizeof(signal))) {
    return std::nullopt;
  }
  return signal.ssi_signo == SIGHUP ? Signal::reload : Signal::end;
}

}  // namespace hf::kernel
