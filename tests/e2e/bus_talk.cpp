// bus_talk: does with a Bus what its standard input says, a line each, and answers in a line: after how many
// milliseconds, and what came of it. Lines: open LIMIT, allow UNIT REQUEST…, read UNIT, watch, take SILENCE, state.
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
using Words = std::vector<std::string>;

milliseconds parse_limit(const std::string& word) {
  return milliseconds(hf::parse_number<std::uint32_t>(word).value_or(0));
}

template <class T>
std::string to_words(const Result<T>& result) {
  return result ? "ok" : "error " + std::to_string(int(result.error().code)) + " " + result.error().message;
}

std::string open(std::optional<Bus>& bus, milliseconds limit) {
  const Result<hf::kernel::Host> host = hf::kernel::open_host();
  if (!host) {
    return to_words(host);
  }
  Result<Bus> opened = Bus::open(*host, limit);
  const std::string words = to_words(opened);
  if (opened) {
    bus.emplace(*std::move(opened));
  }
  return words;
}

std::string allow(Bus& bus, const Words& words) {
  std::vector<hf::systemd::DeviceEntry> devices;
  for (std::size_t index = 2; index < words.size(); ++index) {
    const Result<hf::device::Request> request = hf::device::parse_request(words[index]);
    if (!request) {
      return to_words(request);
    }
    devices.push_back({request->device, request->access});
  }
  return to_words(bus.allow_devices(words[1], devices));
}

std::string read(Bus& bus, const std::string& unit) {
  const Result<Words> list = bus.read_device_allow(unit);
  return list ? "ok " + hf::join(*list, ",") : to_words(list);
}

// What was heard until there was silence for so long.
std::string take(Bus& bus, milliseconds silence) {
  std::string words = "ok";
  for (bool is_silent = false; !is_silent;) {
    for (const bool begins : bus.take_reloads()) {
      words += begins ? " begins" : " ends";
    }
    pollfd waiting{bus.descriptor(), POLLIN, 0};
    is_silent = !bus.is_connected() || ::poll(&waiting, 1, int(silence.count())) <= 0;
  }
  return words;
}

std::string answer(std::optional<Bus>& bus, const Words& words) {
  if (words.size() == 2 && words[0] == "open") {
    return open(bus, parse_limit(words[1]));
  }
  if (!bus || words.empty()) {
    return "error: nothing is open";
  }
  if (words.size() >= 2 && words[0] == "allow") {
    return allow(*bus, words);
  }
  if (words.size() == 2 && words[0] == "read") {
    return read(*bus, words[1]);
  }
  if (words.size() == 2 && words[0] == "take") {
    return take(*bus, parse_limit(words[1]));
  }
  if (words[0] == "watch") {
    return to_words(bus->watch_reloads());
  }
  return bus->is_connected() ? "connected" : "gone";
}

}  // namespace

int main() {
  std::optional<Bus> bus;
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<std::string_view> parts = hf::split_words(line);
    const auto start = std::chrono::steady_clock::now();
    const std::string words = answer(bus, Words(parts.begin(), parts.end()));
    const auto took = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
    std::cout << took.count() << " " << words << std::endl;  // NOLINT(performance-avoid-endl): somebody waits for it
  }
  return 0;
}
