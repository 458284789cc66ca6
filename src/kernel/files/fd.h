// Fd: a file descriptor that closes itself.
#pragma once

#include <utility>

namespace hf::kernel {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int number) : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();

  [[nodiscard]] int get() const { return number_; }
  [[nodiscard]] int release() { return std::exchange(number_, -1); }  // the caller closes it
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

void raise_descriptor_limit();  // of this process, to what it may set

}  // namespace hf::kernel
