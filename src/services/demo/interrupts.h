// Interrupts: Ctrl-C and its like, also a reader who went away, heard where we wait, so that everything can be cleaned
// up.
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

  // False where somebody has asked us to end: now, or at any time before.
  bool pause(std::chrono::nanoseconds time);
  [[nodiscard]] bool has_come() { return !pause(std::chrono::nanoseconds(0)); }

 private:
  sigset_t signals_{};
  sigset_t before_{};
  bool has_come_ = false;
};

}  // namespace hf::demo
