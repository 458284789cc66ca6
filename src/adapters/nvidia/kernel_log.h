// KernelLog: the errors that NVIDIA's driver has written to the kernel log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/files/host.h"

namespace hf::nvidia {

struct LogEvent {
  enum class Kind : std::uint8_t { xid, initialisation_failed, excluded, version_mismatch, lost };

  Kind kind = Kind::xid;
  std::uint32_t xid = 0;
  std::string pci;  // "0000:65:00"; "" where the line names none
  std::string line;
};

std::vector<LogEvent> parse_kernel_log(std::string_view text);  // lines of /dev/kmsg
std::vector<LogEvent> read_kernel_log(const kernel::Host& host);

}  // namespace hf::nvidia
