// Loads: news of every BPF program that is loaded or unloaded, by the kernel's perf events. Free for everybody else.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/container/event.h"
#include "kernel/fd.h"

namespace hf::kernel {

// Kernel 5.1+. A program that is loaded is about to be attached, but which one, and where, is not told; one that was
// loaded before and is attached again is not seen at all.
class Loads {
 public:
  static Result<Loads> open();

  Loads(Loads&&) noexcept = default;
  Loads& operator=(Loads&&) = delete;
  Loads(const Loads&) = delete;
  Loads& operator=(const Loads&) = delete;
  ~Loads();

  [[nodiscard]] int descriptor() const { return all_.get(); }
  void take(std::vector<container::Event>& events);

 private:
  Loads() = default;

  struct Ring {
    Fd event;
    void* pages = nullptr;
  };
  static void take_from(Ring& ring, std::vector<container::Event>& events);

  Fd all_;  // an epoll of the rings
  std::vector<Ring> rings_;
};

}  // namespace hf::kernel
