// CpuBoard: the latest status of the CPU manager, from its thread to the recorder's.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "core/report/cpu_report.h"

namespace hf::programs {

class CpuBoard {
 public:
  void publish(std::shared_ptr<const report::CpuStatus> status) {
    const std::scoped_lock lock(mutex_);
    status_ = std::move(status);
  }
  [[nodiscard]] std::shared_ptr<const report::CpuStatus> latest() const {
    const std::scoped_lock lock(mutex_);
    return status_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const report::CpuStatus> status_;  // shared with snapshots
};

}  // namespace hf::programs
