// LookupChild: a child that looks paths up in root file systems of containers, one after the other. A file system may
// hang, and then only the child does. It ends by itself when nothing was asked for a second.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "kernel/container/node_report.h"
#include "kernel/files/fd.h"
#include "kernel/process/child.h"

namespace hf::kernel {

class LookupChild {
 public:
  // One report per path. timed_out: the child hangs, and was given up. value_too_large: more paths than it takes.
  Result<std::vector<NodeReport>> look_up(int root, const std::vector<std::string>& paths,
                                          std::chrono::milliseconds limit);

 private:
  Result<void> start();
  void stop();
  [[nodiscard]] bool send(int root, const std::string& text) const;

  std::optional<Child> child_;
  Fd socket_;
};

}  // namespace hf::kernel
