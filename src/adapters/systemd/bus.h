// Bus: a connection to systemd that adds devices to a unit and reports systemd's reloads. No call waits longer than the
// limit the connection was opened with. For one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "adapters/systemd/device_allow.h"
#include "adapters/systemd/message.h"
#include "core/base/result.h"
#include "kernel/files/host.h"
#include "kernel/net/stream.h"

namespace hf::systemd {

// Errors of the calls: invalid_argument (not a valid unit name or device), no_such_file_or_directory (no such unit),
// permission_denied, timed_out (systemd may still apply it later), not_connected (systemd was re-executed, or is gone:
// open a new connection), bad_message (the peer is no D-Bus server; the connection is closed).
class Bus {
 public:
  // Connects to systemd's private socket, which serves root also without a bus daemon, or else to the system bus.
  static Result<Bus> open(const kernel::Host& host, std::chrono::milliseconds limit);

  // Adds to the unit's list until the host restarts; never removes anything. Sends nothing to systemd when nothing is
  // missing: at every change of a unit's properties systemd attaches its own filter again.
  Result<void> allow_devices(const std::string& unit, const std::vector<DeviceEntry>& devices);

  Result<void> watch_reloads();
  // True for each reload that began, false for each that ended. Does not wait. Call it when the descriptor is readable,
  // even without watch_reloads(), because systemd sends every signal to its private socket; and after other calls,
  // which may have received a reload signal too.
  std::vector<bool> take_reloads();

  [[nodiscard]] int descriptor() const { return stream_.descriptor(); }  // -1 when it is not connected
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
  void note_signal(const Message& signal);
  void drain_received();
  std::uint32_t next_serial();

  kernel::Stream stream_;
  std::chrono::milliseconds limit_;
  std::optional<std::string>
      systemd_;  // its name on the system bus; absent on the private socket, where only systemd sends
  std::uint32_t serial_ = 0;
  std::string received_;  // bytes that are not a complete message yet
  std::vector<bool> reloads_;
};

}  // namespace hf::systemd
