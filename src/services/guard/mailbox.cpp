#include "services/guard/mailbox.h"

#include <cstdint>

#include <sys/eventfd.h>
#include <unistd.h>

namespace hf::guard {

Mailbox::Mailbox() : bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Mailbox::post(Letter letter) {
  bool was_empty = false;
  {
    const std::lock_guard held(mutex_);
    was_empty = letters_.empty();
    letters_.push_back(std::move(letter));
  }
  if (was_empty) {
    const std::uint64_t one = 1;
    (void)!::write(bell_.get(), &one, sizeof(one));
  }
}

std::vector<Mailbox::Letter> Mailbox::take() {
  std::uint64_t rung = 0;
  (void)!::read(bell_.get(), &rung, sizeof(rung));
  const std::lock_guard held(mutex_);
  return std::exchange(letters_, {});
}

}  // namespace hf::guard
