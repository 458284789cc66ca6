// DeviceReader: reads this host's devices on a thread of its own, because a driver that hangs holds up its callers.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "adapters/config/config.h"
#include "host/nri_container.h"
#include "kernel/net/event_loop.h"

namespace hf::cpus {

class DeviceReader {
 public:
  using Devices = std::shared_ptr<const host::HostDevices>;
  using Read = std::function<host::HostDevices(const config::Config& config)>;
  using Deadline = std::chrono::steady_clock::time_point;

  explicit DeviceReader(Read read);
  DeviceReader(const DeviceReader&) = delete;
  DeviceReader& operator=(const DeviceReader&) = delete;
  ~DeviceReader();  // waits for a reading that hangs

  // What was read last where a new reading is not done by then, or an earlier one hangs.
  Devices read_until(Deadline deadline, std::shared_ptr<const config::Config> config);

 private:
  void work();
  [[nodiscard]] Devices last();

  Read read_;
  std::mutex mutex_;
  Devices last_ = std::make_shared<const host::HostDevices>();
  bool is_reading_ = false;
  bool stops_ = false;
  kernel::EventLoop loop_;
  std::thread thread_;  // the last: it uses all others
};

}  // namespace hf::cpus
