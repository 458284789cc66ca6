// Child: a forked process that ends with its parent. The parent never waits for it without a limit.
#pragma once

#include <cstdint>
#include <functional>

#include <sys/types.h>

namespace hf::kernel {

class Child {
 public:
  // Runs the body in the child, which then exits with 0. The result tests false where the child could not be started.
  static Child start(const std::function<void()>& body);

  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  explicit operator bool() const { return pid_ > 0; }

  // short_wait: the child has reported its result and is about to exit. Kills it if it does not end. Returns the status
  // of waitpid(2).
  enum class Grace : std::uint8_t { none, short_wait };
  int end(Grace grace);

 private:
  explicit Child(pid_t pid) : pid_(pid) {}

  pid_t pid_;
};

}  // namespace hf::kernel
