// V1Writes: who writes to files of the v1 devices hierarchy, in whatever mount namespace, by fanotify.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/container/event.h"
#include "kernel/fd.h"
#include "kernel/host.h"

namespace hf::kernel {

// One write that was seen: the file by its inode, which is the kernel's own for every path to it.
struct V1Write {
  std::uint64_t file = 0;
  container::Pid pid;
  std::uint64_t at = 0;  // when it was read; fanotify keeps no time
  bool lost = false;     // the queue was full: anything may have been written
};

class V1Writes {
 public:
  static Result<V1Writes> open(const Host& host);

  [[nodiscard]] int descriptor() const { return queue_.get(); }
  void take(std::vector<V1Write>& writes);

 private:
  explicit V1Writes(Fd queue) : queue_(std::move(queue)) {}

  Fd queue_;
};

}  // namespace hf::kernel
