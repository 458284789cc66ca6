// DeviceReader: reads this host's devices on a thread of its own, because a driver that hangs holds up who asks it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "adapters/config/config.h"
#include "core/device/inventory.h"
#include "kernel/net/event_loop.h"

namespace hf::cpus {

class DeviceReader {
 public:
  using Read = std::function<device::Inventory(const config::Config& config)>;
  using Deadline = std::chrono::steady_clock::time_point;

  explicit DeviceReader(Read read);
  DeviceReader(const DeviceReader&) = delete;
  DeviceReader& operator=(const DeviceReader&) = delete;
  ~DeviceReader();  // waits for a reading that hangs

  // What was read last where a new reading is not done by then, or an earlier one hangs.
  std::shared_ptr<const device::Inventory> read_until(Deadline deadline, std::shared_ptr<const config::Config> config);

 private:
  void work();
  [[nodiscard]] std::shared_ptr<const device::Inventory> last();

  Read read_;
  std::mutex mutex_;
  std::shared_ptr<const device::Inventory> last_ = std::make_shared<const device::Inventory>();
  bool is_reading_ = false;
  bool stops_ = false;
  kernel::EventLoop loop_;
  std::thread thread_;  // the last: it uses all others
};

}  // namespace hf::cpus
