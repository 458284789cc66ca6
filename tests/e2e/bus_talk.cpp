// bus_talk: carries out the lines of its standard input on a Bus. It answers each with one line: the time it took in
// milliseconds, and the result. Lines: open LIMIT, allow UNIT REQUEST…, watch, take SILENCE, state.
#include <chrono>
#include <iostream>
#include <optional>
#include <string>

#include <poll.h>

#include "adapters/systemd/bus.h"
#include "core/base/text.h"

namespace {

using hf::Result;
using hf::systemd::Bus;
using std::chrono::milliseconds;
using Arguments = std::vector<std::string>;

milliseconds parse_limit(const std::string& text) {
  return milliseconds(hf::parse_number<std::uint32_t>(text).value_or(0));
}

template <class T>
std::string describe(const Result<T>& result) {
  return result ? "ok" : "error " + std::to_string(int(result.error().code)) + " " + result.error().message;
}

std::string open(std::optional<Bus>& bus, milliseconds limit) {
  const Result<hf::kernel::Host> host = hf::kernel::open_host();
  if (!host) {
    return describe(host);
  }
  Result<Bus> opened = Bus::open(*host, limit);
  const std::string result = describe(opened);
  if (opened) {
    bus.emplace(*std::move(opened));
  }
  return result;
}

std::string allow(Bus& bus, const Arguments& arguments) {
  std::vector<hf::systemd::DeviceEntry> devices;
  for (std::size_t index = 2; index < arguments.size(); ++index) {
    const Result<hf::device::Request> request = hf::device::parse_request(arguments[index]);
    if (!request) {
      return describe(request);
    }
    devices.push_back({request->device, request->access});
  }
  return describe(bus.allow_devices(arguments[1], devices));
}

// The reloads that were reported until none came for that long.
std::string take(Bus& bus, milliseconds silence) {
  std::string events = "ok";
  for (bool is_silent = false; !is_silent;) {
    for (const bool begins : bus.take_reloads()) {
      events += begins ? " begins" : " ends";
    }
    pollfd waiting{bus.descriptor(), POLLIN, 0};
    is_silent = !bus.is_connected() || ::poll(&waiting, 1, int(silence.count())) <= 0;
  }
  return events;
}

std::string answer(std::optional<Bus>& bus, const Arguments& arguments) {
  if (arguments.size() == 2 && arguments[0] == "open") {
    return open(bus, parse_limit(arguments[1]));
  }
  if (!bus || arguments.empty()) {
    return "error: nothing is open";
  }
  if (arguments.size() >= 2 && arguments[0] == "allow") {
    return allow(*bus, arguments);
  }
  if (arguments.size() == 2 && arguments[0] == "take") {
    return take(*bus, parse_limit(arguments[1]));
  }
  if (arguments[0] == "watch") {
    return describe(bus->watch_reloads());
  }
  return bus->is_connected() ? "connected" : "gone";
}

}  // namespace

int main() {
  std::optional<Bus> bus;
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<std::string_view> parts = hf::split_fields(line);
    const auto start = std::chrono::steady_clock::now();
    const std::string result = answer(bus, Arguments(parts.begin(), parts.end()));
    const auto took = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
    std::cout << took.count() << " " << result << std::endl;  // NOLINT(performance-avoid-endl): the test waits for it
  }
  return 0;
}
