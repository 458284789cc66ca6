#include "adapters/systemd/bus.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <thread>

#include <dbus/dbus.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/fake_host.h"

namespace hf::systemd {
namespace {

using namespace std::chrono_literals;
using test::FakeHost;
using Clock = std::chrono::steady_clock;
using Texts = std::vector<std::string>;

constexpr const char* kPrivate = "/run/systemd/private";
constexpr const char* kSystem = "/run/dbus/system_bus_socket";
constexpr const char* kUnit = "docker-1.scope";
const std::vector<DeviceEntry> kGpu = {
    {{device::Kind::character, 195, 0}, device::Access::read | device::Access::write}};

const test::Files kFiles = {{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
                            {"run/systemd/", ""},
                            {"run/dbus/", ""}};

// A socket whose connections are served by a function, one after the other.
class Server {
 public:
  Server(const FakeHost& host, const char* path, std::function<void(int)> serve)
      : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{AF_UNIX, {}};
    (host.root() + path).copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    thread_ = std::thread([this, serve = std::move(serve)] {
      for (;;) {
        const kernel::Fd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!connection) {
          return;
        }
        serve(connection.get());
      }
    });
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

 private:
  kernel::Fd listener_;
  std::thread thread_;
};

std::string read_some(int file) {
  char bytes[4096];
  const ssize_t count = ::read(file, bytes, sizeof(bytes));
  return count > 0 ? std::string(bytes, std::size_t(count)) : "";
}

void write_text(int file, const std::string& text) {
  EXPECT_EQ(::send(file, text.data(), text.size(), MSG_NOSIGNAL), ssize_t(text.size()));
}

void read_to_the_end(int file) {
  while (!read_some(file).empty()) {
  }
}

std::string bytes_of(DBusMessage* message) {
  dbus_message_set_serial(message, 1);
  char* start = nullptr;
  int length = 0;
  EXPECT_TRUE(dbus_message_marshal(message, &start, &length));
  const std::string bytes(start, std::size_t(length));
  dbus_free(start);
  dbus_message_unref(message);
  return bytes;
}

std::string reloading(bool begins, const char* sender = nullptr) {
  DBusMessage* signal =
      dbus_message_new_signal("/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "Reloading");
  const dbus_bool_t flag = begins ? TRUE : FALSE;
  EXPECT_TRUE(dbus_message_append_args(signal, DBUS_TYPE_BOOLEAN, &flag, DBUS_TYPE_INVALID));
  EXPECT_TRUE(dbus_message_set_sender(signal, sender));
  return bytes_of(signal);
}

std::string owner_changed() {
  DBusMessage* signal = dbus_message_new_signal("/org/freedesktop/DBus", "org.freedesktop.DBus", "NameOwnerChanged");
  const char* name = "org.freedesktop.systemd1";
  EXPECT_TRUE(dbus_message_append_args(signal, DBUS_TYPE_STRING, &name, DBUS_TYPE_INVALID));
  EXPECT_TRUE(dbus_message_set_sender(signal, "org.freedesktop.DBus"));
  return bytes_of(signal);
}

// The D-Bus side of a systemd with one unit. `asked` records each call: its member and its texts.
struct FakeSystemd {
  std::string policy = "strict";
  Texts allow = {};           // pairs of a path and access bits
  std::string error = {};     // returned by SetUnitProperties
  std::string before = {};    // bytes sent before each reply
  std::string bus_name = {};  // of the owner, on a bus
  std::vector<Texts> asked = {};

  void serve(int file) {
    const std::string hello = read_some(file);
    EXPECT_TRUE(hello.starts_with(std::string("\0AUTH EXTERNAL 3", 16)) && hello.ends_with("\r\nBEGIN\r\n")) << hello;
    write_text(file, "OK 0123456789abcdef0123456789abcdef\r\n");
    std::string bytes;
    for (std::string more = read_some(file); !more.empty(); more = read_some(file)) {
      bytes += more;
      for (std::size_t length = length_of_first(bytes).value(); length != 0 && length <= bytes.size();
           length = length_of_first(bytes).value()) {
        write_text(file, before + answer(bytes.substr(0, length)));
        bytes.erase(0, length);
      }
    }
  }

  std::string answer(const std::string& bytes) {
    DBusMessage* call = dbus_message_demarshal(bytes.data(), int(bytes.size()), nullptr);
    const Message message = parse_message(bytes).value();
    asked.push_back({message.member});
    asked.back().insert(asked.back().end(), message.texts.begin(), message.texts.end());
    DBusMessage* reply = reply_to(call, message);
    dbus_message_unref(call);
    return bytes_of(reply);
  }

  DBusMessage* reply_to(DBusMessage* call, const Message& message) {
    if (message.member == "GetUnit" && message.texts.front() != kUnit) {
      return dbus_message_new_error(call, "org.freedesktop.systemd1.NoSuchUnit", "Unit not\nloaded.");
    }
    if (message.member == "SetUnitProperties" && !error.empty()) {
      return dbus_message_new_error(call, error.c_str(), "No.");
    }
    DBusMessage* reply = dbus_message_new_method_return(call);
    Texts texts;
    if (message.member == "GetUnit") {
      const char* path = "/org/freedesktop/systemd1/unit/docker_2d1_2escope";
      EXPECT_TRUE(dbus_message_append_args(reply, DBUS_TYPE_OBJECT_PATH, &path, DBUS_TYPE_INVALID));
    } else if (message.member == "Get") {
      texts = message.texts.back() == "DevicePolicy" ? Texts{policy} : allow;
    } else if (message.member == "GetNameOwner") {
      texts = {bus_name};
    }
    for (const std::string& text : texts) {
      const char* start = text.c_str();
      EXPECT_TRUE(dbus_message_append_args(reply, DBUS_TYPE_STRING, &start, DBUS_TYPE_INVALID));
    }
    return reply;
  }

  // The calls that changed something.
  [[nodiscard]] std::vector<Texts> changes() const {
    std::vector<Texts> found;
    std::ranges::copy_if(asked, std::back_inserter(found),
                         [](const Texts& call) { return call[0] == "SetUnitProperties"; });
    return found;
  }
};

Result<void> allow_with(FakeSystemd& systemd, const std::vector<DeviceEntry>& devices, const char* unit = kUnit) {
  const FakeHost host(kFiles);
  const Server server(host, kPrivate, [&](int file) { systemd.serve(file); });
  Bus bus = Bus::open(host.open(), 5s).value();
  return bus.allow_devices(unit, devices);
}

TEST(Bus, AddsDevicesToAUnit) {
  FakeSystemd systemd;
  EXPECT_TRUE(allow_with(systemd, kGpu));
  EXPECT_EQ(systemd.changes(),
            (std::vector<Texts>{{"SetUnitProperties", kUnit, "DeviceAllow", "/dev/char/195:0", "rw"}}));
}

TEST(Bus, KeepsTheAccessBitsTheUnitHas) {
  FakeSystemd systemd{.allow = {"/dev/char/195:0", "m"}};
  EXPECT_TRUE(allow_with(systemd, kGpu));
  EXPECT_EQ(systemd.changes().at(0).back(), "rwm");
}

// systemd: an empty list resets, and the first entry restricts a unit without policy.
TEST(Bus, SendsNothingWhereThatWouldRemoveDevices) {
  FakeSystemd systemd{.allow = {"/dev/char/195:0", "rw"}};
  EXPECT_TRUE(allow_with(systemd, kGpu));
  EXPECT_TRUE(allow_with(systemd, {}));
  FakeSystemd open{.policy = "auto"};
  EXPECT_TRUE(allow_with(open, kGpu));
  EXPECT_TRUE(systemd.changes().empty());
  EXPECT_TRUE(open.changes().empty());
}

TEST(Bus, ReportsTheErrorsOfSystemd) {
  FakeSystemd systemd;
  EXPECT_EQ(allow_with(systemd, kGpu, "docker-2.scope").error().code, std::errc::no_such_file_or_directory);
  EXPECT_EQ(allow_with(systemd, kGpu, "docker-2.scope").error().message.find('\n'), std::string::npos);
  systemd.error = "org.freedesktop.DBus.Error.AccessDenied";
  EXPECT_EQ(allow_with(systemd, kGpu).error().code, std::errc::permission_denied);
}

TEST(Bus, SendsNothingForAnInvalidUnitName) {
  FakeSystemd systemd;
  EXPECT_EQ(allow_with(systemd, kGpu, "a\xff.scope").error().code, std::errc::invalid_argument);
  EXPECT_TRUE(systemd.asked.empty());
}

TEST(Bus, CollectsReloadsThatArriveDuringOtherCalls) {
  FakeSystemd systemd{.before = reloading(true) + reloading(false)};
  const FakeHost host(kFiles);
  const Server server(host, kPrivate, [&](int file) { systemd.serve(file); });
  Bus bus = Bus::open(host.open(), 5s).value();
  EXPECT_TRUE(bus.take_reloads().empty());
  EXPECT_TRUE(bus.watch_reloads());
  EXPECT_EQ(bus.take_reloads(), (std::vector{true, false}));
  EXPECT_TRUE(bus.take_reloads().empty());
}

TEST(Bus, FallsBackToTheSystemBusWhenThePrivateSocketIsClosed) {
  FakeSystemd systemd{.before = reloading(true, ":1.66") + reloading(false, ":1.5"), .bus_name = ":1.5"};
  const FakeHost host(kFiles);
  const Server closed(host, kPrivate, [](int) {});
  const Server server(host, kSystem, [&](int file) { systemd.serve(file); });
  Bus bus = Bus::open(host.open(), 5s).value();
  EXPECT_TRUE(bus.take_reloads().empty());
  EXPECT_TRUE(bus.watch_reloads());
  EXPECT_EQ(bus.take_reloads(), (std::vector{false, false})) << "signals of other senders are ignored";
  EXPECT_TRUE(bus.is_connected());
  systemd.before = owner_changed();
  EXPECT_EQ(bus.allow_devices(kUnit, kGpu).error().code, std::errc::not_connected);
  EXPECT_FALSE(bus.is_connected());
}

void expect_refused(const std::function<void(int)>& serve, std::errc code) {
  const FakeHost host(kFiles);
  const Server server(host, kPrivate, serve);
  const Clock::time_point start = Clock::now();
  Result<Bus> bus = Bus::open(host.open(), code == std::errc::timed_out ? 100ms : 10'000ms);
  const Result<void> done = bus ? bus->allow_devices(kUnit, kGpu) : std::unexpected(bus.error());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, code) << done.error().message;
  EXPECT_LT(Clock::now() - start, 5s);
  bus = std::unexpected(Error());  // disconnects, or the server keeps reading
}

// A server that sends this text and reads until the client disconnects.
std::function<void(int)> sends(const std::string& text) {
  return [text](int file) {
    write_text(file, text);
    read_to_the_end(file);
  };
}

TEST(Bus, TimesOutWhenThePeerDoesNotAnswer) {
  expect_refused(read_to_the_end, std::errc::timed_out);
  expect_refused(sends("OK 1\r\n"), std::errc::timed_out);
}

TEST(Bus, TimesOutWhenThePeerSendsSignalsWithoutEnd) {
  expect_refused(
      [](int file) {
        const std::string noise = reloading(true);
        std::string bytes = "OK 1\r\n";
        while (::send(file, bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0) {
          bytes = noise;
        }
      },
      std::errc::timed_out);
}

TEST(Bus, RejectsAPeerThatDoesNotSpeakDbus) {
  expect_refused(sends(std::string(4096, 'x')), std::errc::bad_message);
  expect_refused(sends("REJECTED\r\n"), std::errc::permission_denied);
  expect_refused(sends("OK 1\r\n" + std::string(64, 'x')), std::errc::bad_message);
  expect_refused([](int /*file*/) {}, std::errc::not_connected);
}

TEST(Bus, NamesBothSocketsWhenNeitherExists) {
  const FakeHost host(kFiles);
  const Result<Bus> bus = Bus::open(host.open(), 100ms);
  ASSERT_FALSE(bus);
  EXPECT_EQ(bus.error().code, std::errc::no_such_file_or_directory);
  EXPECT_TRUE(bus.error().message.contains(kPrivate));
  EXPECT_TRUE(bus.error().message.contains(kSystem));
}

TEST(Bus, IsNotConnectedOnceSystemdIsGone) {
  FakeSystemd systemd;
  const FakeHost host(kFiles);
  auto server = std::make_unique<Server>(host, kPrivate, [&](int file) {
    (void)read_some(file);
    write_text(file, "OK 1\r\n" + reloading(true));
  });
  Bus bus = Bus::open(host.open(), 5s).value();
  server.reset();
  EXPECT_EQ(bus.take_reloads(), std::vector{true}) << "signals sent before the disconnect count";
  EXPECT_FALSE(bus.is_connected());
  EXPECT_EQ(bus.descriptor(), -1);
  EXPECT_EQ(bus.allow_devices(kUnit, kGpu).error().code, std::errc::not_connected);
  EXPECT_EQ(bus.watch_reloads().error().code, std::errc::not_connected);
  EXPECT_TRUE(bus.take_reloads().empty());
}

}  // namespace
}  // namespace hf::systemd
