// Child: a process of ours that ends with us, and is never waited for without end.
#pragma once

#include <cstdint>
#include <functional>

#include <sys/types.h>

namespace hf::kernel {

class Child {
 public:
  // The body runs in the child, which then exits with 0. False in a boolean test where it could not be started.
  static Child start(const std::function<void()>& body);

  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  explicit operator bool() const { return pid_ > 0; }

  // short_wait: it has said what it had to say and is about to exit. The status of waitpid(2); kills what does not end.
  enum class Patience : std::uint8_t { none, short_wait };
  int end(Patience patience);

 private:
  explicit Child(pid_t pid) : pid_(pid) {}

  pid_t pid_;
};

}  // namespace hf::kernel
