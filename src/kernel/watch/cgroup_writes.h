// CgroupWrites: reports with fanotify which processes write to files of a cgroup hierarchy, in any mount namespace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/guard/event.h"
#include "kernel/files/fd.h"
#include "kernel/files/host.h"

namespace hf::kernel {

// One observed write. The file is identified by its inode, which is the same for every path to it.
struct CgroupWrite {
  std::uint64_t file = 0;
  container::Pid pid;
  std::uint64_t at = 0;  // when it was read; fanotify records no time
  bool lost = false;     // the queue was full, so any file may have been written
};

class CgroupWrites {
 public:
  static Result<CgroupWrites> open(const Host& host, const std::string& mount);  // where the hierarchy is mounted

  [[nodiscard]] int descriptor() const { return queue_.get(); }
  void take(std::vector<CgroupWrite>& writes);

 private:
  explicit CgroupWrites(Fd queue) : queue_(std::move(queue)) {}

  Fd queue_;
};

}  // namespace hf::kernel
