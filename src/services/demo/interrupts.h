// Interrupts: Ctrl-C, other ending signals and a closed pipe, noticed only while we wait, so that everything can be
// cleaned up.
#pragma once

#include <chrono>
#include <csignal>

namespace hf::demo {

class Interrupts {
 public:
  Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

  // False after a signal that asks us to end: during this pause, or at any time before.
  bool pause(std::chrono::nanoseconds time);
  [[nodiscard]] bool is_interrupted() { return !pause(std::chrono::nanoseconds(0)); }

 private:
  sigset_t signals_{};
  sigset_t before_{};
  bool is_interrupted_ = false;
};

}  // namespace hf::demo
