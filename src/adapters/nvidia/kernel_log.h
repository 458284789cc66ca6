// KernelLog: the errors that NVIDIA's driver has written to the kernel log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "kernel/files/fd.h"
#include "kernel/files/host.h"

namespace hf::nvidia {

struct LogEvent {
  enum class Kind : std::uint8_t { xid, initialisation_failed, excluded, version_mismatch, lost };

  Kind kind = Kind::xid;
  std::uint32_t xid = 0;
  std::string pci;  // "0000:65:00"; "" where the line names none
  std::string line;
};

// Lines of /dev/kmsg. Those that a program wrote there are skipped: it may be a program in a container.
std::vector<LogEvent> parse_kernel_log(std::string_view text);
std::vector<LogEvent> read_kernel_log(const kernel::Host& host);

// Errors as they happen.
class KernelLogEvents {
 public:
  static Result<KernelLogEvents> open(const kernel::Host& host);

  [[nodiscard]] int descriptor() const { return log_.get(); }
  std::vector<LogEvent> take();  // since the last call

 private:
  explicit KernelLogEvents(kernel::Fd log) : log_(std::move(log)) {}

  kernel::Fd log_;
};

}  // namespace hf::nvidia
