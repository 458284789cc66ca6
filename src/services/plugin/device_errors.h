// DeviceErrors: reasons why a device must not be offered: errors in the kernel log, and losses that holdfastd cannot
// repair.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "adapters/nvidia/kernel_log.h"
#include "core/device/inventory.h"
#include "kernel/files/host.h"
#include "kernel/net/event_loop.h"
#include "services/plugin/guard_events.h"

namespace hf::plugin {

class DeviceErrors {
 public:
  struct Error {
    std::function<bool(const device::Unit&)> is_about;
    std::string pod;  // its uid: only what this pod was given is affected; "": the whole unit
    std::string why;
  };
  using OnError = std::function<void(const Error&)>;

  struct Settings {
    std::string socket;         // holdfastd's; "": there is none
    std::uint32_t history = 0;  // seconds before the start whose records are passed on too
    OnError on_error;
    std::function<void(const report::BlameRecord&)> record;  // gets every record of the guard
  };
  DeviceErrors(kernel::EventLoop& loop, Settings settings);

  // NVIDIA's driver writes its errors (Xid) to the kernel log, whether NVML answers or not.
  Result<void> open(const kernel::Host& host, const std::set<unsigned>& ignored_xids);
  void work(std::uint64_t now) { guard_.work(now); }
  [[nodiscard]] std::uint64_t next_due() const { return guard_.next_due(); }

 private:
  void take_log();
  void take_record(const report::BlameRecord& record);

  kernel::EventLoop& loop_;
  Settings settings_;
  std::set<unsigned> ignored_xids_;
  std::optional<nvidia::KernelLogEvents> log_;
  GuardEvents guard_;
};

}  // namespace hf::plugin
