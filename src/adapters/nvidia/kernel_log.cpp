#include "adapters/nvidia/kernel_log.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/files/fd.h"

namespace hf::nvidia {
namespace {

constexpr std::size_t kMostText = std::size_t(4) << 20;

// "PCI:0000:65:00", "GPU 0000:65:00.0:", "excluded 0000:65:00.0": the first PCI address in the line.
std::string pci_in(std::string_view line) {
  constexpr std::string_view kForm = "xxxx:xx:xx";
  constexpr std::string_view kHex = "0123456789abcdefABCDEF";
  for (std::size_t start = 0; start + kForm.size() <= line.size(); ++start) {
    std::size_t length = 0;
    while (length < kForm.size() &&
           (kForm[length] == 'x' ? kHex.contains(line[start + length]) : line[start + length] == kForm[length])) {
      ++length;
    }
    if (length == kForm.size()) {
      const bool has_function = start + length + 1 < line.size() && line[start + length] == '.';
      return std::string(line.substr(start, length + (has_function ? 2 : 0)));
    }
  }
  return {};
}

// "NVRM: Xid (PCI:0000:65:00): 79, pid=…": the number after the parenthesis.
std::optional<std::uint32_t> xid_in(std::string_view line) {
  const std::size_t begin = line.find("Xid (");
  const std::size_t close = begin == std::string_view::npos ? begin : line.find("): ", begin);
  if (close == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = line.substr(close + 3);
  return parse_number<std::uint32_t>(rest.substr(0, rest.find_first_not_of("0123456789")));
}

// "3,1042,81633,-;text": the first number is 8 times the facility, which is 0 only for the kernel, and the level.
bool is_by_a_program(std::string_view line) {
  constexpr std::uint32_t kFirstOfPrograms = 8;
  return parse_number<std::uint32_t>(line.substr(0, line.find(','))).value_or(0) >= kFirstOfPrograms;
}

std::optional<LogEvent> event_in(std::string_view line) {
  const std::size_t start = line.find("NVRM:");
  if (start == std::string_view::npos || is_by_a_program(line)) {
    return std::nullopt;
  }
  const std::string_view text = line.substr(start);
  LogEvent event;
  event.line = text;
  event.pci = pci_in(text);
  if (const std::optional<std::uint32_t> xid = xid_in(text)) {
    event.xid = *xid;
    return event;
  }
  using enum LogEvent::Kind;
  constexpr std::array<std::pair<std::string_view, LogEvent::Kind>, 5> kMessages = {
      {{"RmInitAdapter failed", initialisation_failed},
       {"rm_init_adapter failed", initialisation_failed},
       {"open() not permitted for excluded", excluded},
       {"API mismatch", version_mismatch},
       {"GPU has fallen off the bus", lost}}};
  for (const auto& [message, kind] : kMessages) {
    if (text.find(message) != std::string_view::npos) {
      event.kind = kind;
      return event;
    }
  }
  return std::nullopt;
}

std::string read_records(const kernel::Fd& log) {
  std::string text;
  std::array<char, 8192> record;
  while (log && text.size() < kMostText) {
    const ssize_t count = ::read(log.get(), record.data(), record.size());
    if (count < 0 && (errno == EPIPE || errno == EINTR)) {
      continue;  // Kernel: EPIPE means that a record was overwritten before it was read; the next read continues
    }
    if (count <= 0) {
      break;
    }
    text.append(record.data(), std::size_t(count));
  }
  return text;
}

}  // namespace

std::vector<LogEvent> parse_kernel_log(std::string_view text) {
  std::vector<LogEvent> events;
  for (const std::string_view line : split(text, '\n')) {
    if (std::optional<LogEvent> event = event_in(line)) {
      events.push_back(*std::move(event));
    }
  }
  return events;
}

std::vector<LogEvent> read_kernel_log(const kernel::Host& host) {
  const kernel::Fd log(::openat(host.root.get(), "dev/kmsg", O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return parse_kernel_log(read_records(log));
}

Result<KernelLogEvents> KernelLogEvents::open(const kernel::Host& host) {
  kernel::Fd log(::openat(host.root.get(), "dev/kmsg", O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!log) {
    return fail_errno(errno, "open /dev/kmsg");
  }
  (void)::lseek(log.get(), 0, SEEK_END);
  return KernelLogEvents(std::move(log));
}

std::vector<LogEvent> KernelLogEvents::take() { return parse_kernel_log(read_records(log_)); }

}  // namespace hf::nvidia
