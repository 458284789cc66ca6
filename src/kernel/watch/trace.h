// Trace: BPF programs that report which process changes device programs, and which cgroups are created and removed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/result.h"
#include "core/container/guard/event.h"

namespace hf::kernel {

// The tracepoints of bpf(2) cost a few nanoseconds on every system call of the host.
class Trace {
 public:
  static Result<Trace> open();

  Trace(Trace&&) noexcept;
  Trace& operator=(Trace&&) = delete;
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace();

  [[nodiscard]] int descriptor() const;  // readable when there are events to take
  // Takes all events since the last call, rule events first. An event of kind `lost` is added if the kernel dropped
  // some.
  void take(std::vector<container::Event>& events);

 private:
  struct Rings;
  explicit Trace(std::unique_ptr<Rings> rings);

  std::unique_ptr<Rings> rings_;
};

}  // namespace hf::kernel
