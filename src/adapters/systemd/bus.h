// Bus: a connection of our own to systemd, to tell it of a unit's devices and to hear of its reloads. No call waits
// longer than the limit the connection was opened with. For one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "adapters/systemd/device_allow.h"
#include "adapters/systemd/message.h"
#include "core/base/result.h"
#include "kernel/host.h"
#include "kernel/stream.h"

namespace hf::systemd {

// Errors of the calls: invalid_argument (a name or device that cannot be), no_such_file_or_directory (no such unit),
// permission_denied, timed_out (systemd may still do it later), not_connected (systemd was executed anew, or is gone:
// open again), bad_message (whoever answers does not speak D-Bus; the connection is closed).
class Bus {
 public:
  // systemd's own socket, which answers root also without a bus; else the system bus.
  static Result<Bus> open(const kernel::Host& host, std::chrono::milliseconds limit);

  // Adds to the unit's list, until the machine restarts; never takes away. Says nothing to systemd where nothing is
  // missing: at every word about a unit systemd puts its own filter back.
  Result<void> allow_devices(const std::string& unit, const std::vector<DeviceEntry>& devices);
  // The list as systemd has it now, in memory: "/dev/char/195:0 rw".
  Result<std::vector<std::string>> read_device_allow(const std::string& unit);

  Result<void> watch_reloads();
  // True where a reload began, false where it ended. Does not wait. To be called when the descriptor is readable,
  // watched or not, as systemd tells its own socket everything; and after other calls, which may have heard of a reload
  // too.
  std::vector<bool> take_reloads();

  [[nodiscard]] int descriptor() const { return stream_.descriptor(); }  // -1 where it is not connected
  [[nodiscard]] bool is_connected() const { return stream_.is_open(); }  // as far as the last call has seen

 private:
  using Deadline = kernel::Clock::time_point;

  Bus(kernel::Stream stream, std::chrono::milliseconds limit) : stream_(std::move(stream)), limit_(limit) {}

  static Result<Bus> open_private(const kernel::Host& host, std::chrono::milliseconds limit, Deadline deadline);
  static Result<Bus> open_system(const kernel::Host& host, std::chrono::milliseconds limit, Deadline deadline);

  [[nodiscard]] Deadline deadline() const;
  Result<void> authenticate(Deadline deadline);
  Result<Message> call(const Call& call, Deadline deadline);
  Result<Message> exchange(const std::string& bytes, const std::string& what, Deadline deadline);
  Result<Message> read_property(const std::string& unit, const std::string& name, Deadline deadline);
  Result<std::vector<std::string>> read_list(const std::string& unit, Deadline deadline);
  Result<std::optional<Message>> take_message();
  void hear(const Message& signal);
  void hear_all();  // of what was received
  std::uint32_t next_serial();

  kernel::Stream stream_;
  std::chrono::milliseconds limit_;
  std::optional<std::string>
      systemd_;  // its name on the system bus; absent on its own socket, where nobody else speaks
  std::uint32_t serial_ = 0;
  std::string received_;  // what is no whole message yet
  std::vector<bool> reloads_;
};

}  // namespace hf::systemd
