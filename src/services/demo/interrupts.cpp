#include "services/demo/interrupts.h"

namespace hf::demo {

Interrupts::Interrupts() {
  ::sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    ::sigaddset(&signals_, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

Interrupts::~Interrupts() {
  (void)is_interrupted();  // consumes a Ctrl-C that came during the cleanup
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool Interrupts::pause(std::chrono::nanoseconds time) {
  constexpr long kSecond = 1'000'000'000;
  const timespec limit{time_t(time.count() / kSecond), long(time.count() % kSecond)};
  is_interrupted_ = is_interrupted_ || ::sigtimedwait(&signals_, nullptr, &limit) > 0;
  return !is_interrupted_;
}

}  // namespace hf::demo
