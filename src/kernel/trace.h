// Trace: programs of ours in the kernel that tell who changes device programs, and which cgroups come and go.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/result.h"
#include "core/container/event.h"

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

  [[nodiscard]] int descriptor() const;  // readable when there is something to take
  // All that has happened since, rule events first. If the kernel had no room for some, one of kind `lost` says so.
  void take(std::vector<container::Event>& events);

 private:
  struct Rings;
  explicit Trace(std::unique_ptr<Rings> rings);

  std::unique_ptr<Rings> rings_;
};

}  // namespace hf::kernel
