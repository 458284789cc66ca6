#include "adapters/systemd/bus.h"

#include <algorithm>
#include <utility>

#include <unistd.h>

#include "core/base/text.h"

// The bytes travel over our own stream, and libdbus only encodes and decodes messages: a connection of libdbus blocks
// forever when the backlog of the socket is full, and changes the SIGPIPE handling of the whole process.

namespace hf::systemd {
namespace {

using std::chrono::milliseconds;

constexpr const char* kPrivateSocket = "/run/systemd/private";
constexpr const char* kSystemSocket = "/run/dbus/system_bus_socket";
constexpr const char* kSystemd = "org.freedesktop.systemd1";
constexpr const char* kSystemdPath = "/org/freedesktop/systemd1";
constexpr const char* kManager = "org.freedesktop.systemd1.Manager";
constexpr const char* kDbus = "org.freedesktop.DBus";

constexpr milliseconds kLongestLimit = std::chrono::hours(1);
constexpr std::size_t kLongestLine = 1024;  // while we authenticate
constexpr int kReadsAtOnce = 64;            // a peer that never stops sending must not block us

Call to_manager(const char* member, std::vector<std::string> arguments) {
  return {kSystemd, kSystemdPath, kManager, member, std::move(arguments)};
}

Call to_bus(const char* member, std::vector<std::string> arguments) {
  return {kDbus, "/org/freedesktop/DBus", kDbus, member, std::move(arguments)};
}

// EXTERNAL authenticates with the uid that the kernel reports for the socket; the request repeats it in decimal, each
// digit as two hexadecimal digits. BEGIN is sent along, before the server has accepted us: systemd (252) does not
// process a message that arrives together with BEGIN until more bytes arrive (sd-bus, bus_socket_auth_verify_server),
// so systemd must have read BEGIN when it answers.
std::string authentication_request() {
  std::string request("\0AUTH EXTERNAL ", 15);
  for (const char digit : std::to_string(::geteuid())) {
    request += {'3', digit};
  }
  return request + "\r\nBEGIN\r\n";
}

Error combine_errors(const Error& first, const Error& second) {
  const bool second_is_missing = second.code == std::errc::no_such_file_or_directory;
  return {second_is_missing ? first.code : second.code, "reach systemd: " + first.message + "; " + second.message};
}

std::unexpected<Error> fail_remote(const Message& error, const std::string& what) {
  const std::string why = error.texts.empty() ? error.member : error.texts.front();
  return fail(code_of(error.member), what + ": " + quote(why));
}

}  // namespace

Result<Bus> Bus::open(const kernel::Host& host, milliseconds limit) {
  limit = std::clamp(limit, milliseconds(0), kLongestLimit);
  const Deadline deadline = kernel::Clock::now() + limit;
  Result<Bus> direct = open_private(host, limit, deadline);
  if (direct || direct.error().code == std::errc::timed_out) {
    return direct;
  }
  Result<Bus> shared = open_system(host, limit, deadline);
  if (!shared) {
    return std::unexpected(combine_errors(direct.error(), shared.error()));
  }
  return shared;
}

Result<Bus> Bus::open_private(const kernel::Host& host, milliseconds limit, Deadline deadline) {
  Bus bus(TRY(kernel::Stream::open(host, kPrivateSocket, deadline)), limit);
  TRY(bus.authenticate(deadline));
  return bus;
}

Result<Bus> Bus::open_system(const kernel::Host& host, milliseconds limit, Deadline deadline) {
  Bus bus(TRY(kernel::Stream::open(host, kSystemSocket, deadline)), limit);
  bus.systemd_ = "";  // no sender is trusted until the owner is known
  TRY(bus.authenticate(deadline));
  TRY(bus.call(to_bus("Hello", {}), deadline));
  TRY(bus.call(to_bus("AddMatch", {"type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
                                   "member='NameOwnerChanged',arg0='org.freedesktop.systemd1'"}),
               deadline));
  const Message owner = TRY(bus.call(to_bus("GetNameOwner", {kSystemd}), deadline));
  bus.systemd_ = owner.texts.empty() ? "" : owner.texts.front();
  return bus;
}

Bus::Deadline Bus::deadline() const { return kernel::Clock::now() + limit_; }

Result<void> Bus::authenticate(Deadline deadline) {
  TRY(stream_.send(authentication_request(), deadline));
  std::size_t end = std::string::npos;
  while ((end = received_.find("\r\n")) == std::string::npos) {
    if (received_.size() > kLongestLine) {
      return fail(std::errc::bad_message, "authenticate: the other end is no D-Bus server");
    }
    received_ += TRY(stream_.receive(deadline));
  }
  const std::string line = received_.substr(0, end);
  received_.erase(0, end + 2);
  if (!line.starts_with("OK ")) {
    return fail(std::errc::permission_denied, "authenticate: answered " + quote(line));
  }
  return {};
}

std::uint32_t Bus::next_serial() {
  serial_ += serial_ == UINT32_MAX ? 2 : 1;  // D-Bus: no message has serial 0
  return serial_;
}

Result<Message> Bus::call(const Call& call, Deadline deadline) {
  const std::string bytes = TRY(render_call(call, next_serial()));
  return exchange(bytes, std::string(call.member) + (call.arguments.empty() ? "" : " " + quote(call.arguments.front())),
                  deadline);
}

// Sends a message that was rendered with the current serial, and waits for the reply to it.
Result<Message> Bus::exchange(const std::string& bytes, const std::string& what, Deadline deadline) {
  TRY(stream_.send(bytes, deadline));
  for (;;) {
    while (const std::optional<Message> message = TRY(take_message())) {
      const bool is_ours = message->reply_to == serial_;  // not a late reply to an earlier call
      if (is_ours && message->kind == Message::Kind::error) {
        return fail_remote(*message, what);
      }
      if (is_ours && message->kind == Message::Kind::answer) {
        return *message;
      }
    }
    if (kernel::Clock::now() >= deadline) {
      return fail(std::errc::timed_out, what + ": no answer in time");
    }
    received_ += TRY(stream_.receive(deadline));
  }
}

Result<std::optional<Message>> Bus::take_message() {
  const Result<std::size_t> length = length_of_first(received_);
  if (length && (*length == 0 || *length > received_.size())) {
    return std::nullopt;
  }
  Result<Message> message = length ? parse_message(std::string_view(received_).substr(0, *length))
                                   : Result<Message>(std::unexpected(length.error()));
  if (!message) {
    stream_.close();
    received_.clear();
    return std::unexpected(message.error());
  }
  received_.erase(0, *length);
  if (message->kind == Message::Kind::signal) {
    note_signal(*message);
  }
  return *std::move(message);
}

// On the system bus every client may send signals to us; the bus sets the real sender of each.
void Bus::note_signal(const Message& signal) {
  const bool is_from_systemd = !systemd_ || signal.sender == *systemd_;
  if (is_from_systemd && signal.interface == kManager && signal.member == "Reloading" && !signal.flags.empty()) {
    reloads_.push_back(signal.flags.front());
  }
  if (systemd_ && signal.sender == kDbus && signal.member == "NameOwnerChanged" && !signal.texts.empty() &&
      signal.texts.front() == kSystemd) {
    stream_.close();  // systemd was re-executed, as when its own socket closes
  }
}

void Bus::drain_received() {
  for (Result<std::optional<Message>> message = take_message(); message && *message; message = take_message()) {
  }
}

// The property is read from the object that GetUnit names: systemd would create a unit that is not loaded if its
// object path were used directly.
Result<Message> Bus::read_property(const std::string& unit, const std::string& name, Deadline deadline) {
  const std::string interface = TRY(interface_of(unit));
  const Message found = TRY(call(to_manager("GetUnit", {unit}), deadline));
  const std::string path = found.texts.empty() ? kSystemdPath : found.texts.front();
  return call({kSystemd, path, "org.freedesktop.DBus.Properties", "Get", {interface, name}}, deadline);
}

Result<std::vector<std::string>> Bus::read_list(const std::string& unit, Deadline deadline) {
  const Message answer = TRY(read_property(unit, "DeviceAllow", deadline));
  std::vector<std::string> list;
  for (std::size_t index = 0; index + 1 < answer.texts.size(); index += 2) {
    list.push_back(answer.texts[index] + " " + answer.texts[index + 1]);
  }
  return list;
}

Result<void> Bus::allow_devices(const std::string& unit, const std::vector<DeviceEntry>& devices) {
  const Deadline end = deadline();
  const Message policy = TRY(read_property(unit, "DevicePolicy", end));
  UnitDevices has;
  has.policy = policy_of(policy.texts.empty() ? "" : policy.texts.front(), DevicePolicy::strict);
  has.allow = TRY(read_list(unit, end));
  const std::vector<DeviceEntry> additions = TRY(plan_additions(has, devices));
  if (additions.empty()) {
    return {};
  }
  const Call call = to_manager("SetUnitProperties", {unit});
  TRY(exchange(TRY(render_device_allow(call, additions, next_serial())), "SetUnitProperties " + quote(unit), end));
  return {};
}

Result<void> Bus::watch_reloads() {
  const Deadline end = deadline();
  if (systemd_) {
    TRY(call(to_bus("AddMatch", {"type='signal',sender='org.freedesktop.systemd1',path='/org/freedesktop/systemd1',"
                                 "interface='org.freedesktop.systemd1.Manager',member='Reloading'"}),
             end));
  }
  TRY(call(to_manager("Subscribe", {}), end));
  return {};
}

std::vector<bool> Bus::take_reloads() {
  drain_received();
  for (int reads = 0; reads < kReadsAtOnce; ++reads) {
    const Result<std::string> bytes = stream_.receive(kernel::kNoWait);
    if (!bytes) {
      break;
    }
    received_ += *bytes;
    drain_received();
  }
  return std::exchange(reloads_, {});
}

}  // namespace hf::systemd
