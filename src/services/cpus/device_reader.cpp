#include "services/cpus/device_reader.h"

#include <future>
#include <utility>

#include "kernel/process/thread.h"

namespace hf::cpus {

DeviceReader::DeviceReader(Read read) : read_(std::move(read)), thread_([this] { work(); }) {}

DeviceReader::~DeviceReader() {
  loop_.post([this] { stops_ = true; });
  thread_.join();
}

void DeviceReader::work() {
  kernel::name_thread("hf-devices");
  kernel::block_all_signals();
  while (!stops_) {
    loop_.run_until(kernel::EventLoop::kNever);
  }
}

DeviceReader::Devices DeviceReader::last() {
  const std::scoped_lock lock(mutex_);
  return last_;
}

DeviceReader::Devices DeviceReader::read_until(Deadline deadline, std::shared_ptr<const config::Config> config) {
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(is_reading_, true)) {
      return last_;
    }
  }
  const auto done = std::make_shared<std::promise<void>>();
  const std::future<void> is_done = done->get_future();
  loop_.post([this, done, config = std::move(config)] {
    auto devices = std::make_shared<const host::HostDevices>(read_(*config));
    {
      const std::scoped_lock lock(mutex_);
      last_ = std::move(devices);
      is_reading_ = false;
    }
    done->set_value();
  });
  (void)is_done.wait_until(deadline);
  return last();
}

}  // namespace hf::cpus
