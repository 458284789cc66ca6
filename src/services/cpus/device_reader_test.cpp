#include "services/cpus/device_reader.h"

#include <atomic>
#include <future>

#include <gtest/gtest.h>

namespace hf::cpus {
namespace {

DeviceReader::Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

host::HostDevices with_units(std::size_t count) {
  host::HostDevices devices;
  devices.inventory.units.resize(count);
  return devices;
}

TEST(DeviceReader, AReadingThatHangsHoldsNobodyUp) {
  const auto config = std::make_shared<const config::Config>();
  std::atomic<std::size_t> readings = 0;
  std::promise<void> driver;
  const std::shared_future<void> answers = driver.get_future().share();
  DeviceReader reader([&](const config::Config&) {
    if (++readings == 2) {
      answers.wait();
    }
    return with_units(readings);
  });
  EXPECT_EQ(reader.read_until(in(std::chrono::minutes(1)), config)->inventory.units.size(), 1U);
  EXPECT_EQ(reader.read_until(in(std::chrono::milliseconds(1)), config)->inventory.units.size(), 1U)
      << "what was read last";
  EXPECT_EQ(reader.read_until(in(std::chrono::minutes(1)), config)->inventory.units.size(), 1U)
      << "none is begun beside it";
  driver.set_value();
  while (reader.read_until(in(std::chrono::minutes(1)), config)->inventory.units.size() < 3U) {
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace hf::cpus
