#include "kernel/files/lock.h"

#include <cerrno>
#include <thread>

#include <sys/file.h>

namespace hf::kernel {

Result<void> lock_within(const Fd& file, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) < 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return fail_errno(errno, "lock it");
    }
    if (std::chrono::steady_clock::now() > deadline) {
      return fail(std::errc::timed_out, "another process holds the lock");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

}  // namespace hf::kernel
