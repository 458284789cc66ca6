// V1Writes: reports with fanotify which processes write to files of the v1 devices hierarchy, in any mount namespace.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/container/guard/event.h"
#include "kernel/files/fd.h"
#include "kernel/files/host.h"

namespace hf::kernel {

// One observed write. The file is identified by its inode, which is the same for every path to it.
struct V1Write {
  std::uint64_t file = 0;
  container::Pid pid;
  std::uint64_t at = 0;  // when it was read; fanotify records no time
  bool lost = false;     // the queue was full, so any file may have been written
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
