// Message: D-Bus messages as bytes, encoded and decoded by libdbus.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/systemd/device_allow.h"
#include "core/base/result.h"

namespace hf::systemd {

// A call of a method that takes strings. Path and arguments may be any text: they are validated before use.
struct Call {
  const char* destination;
  std::string path;
  const char* interface;
  const char* member;
  std::vector<std::string> arguments;
};

Result<std::string> render_call(const Call& call, std::uint32_t serial);

// The same with (runtime = true, DeviceAllow = entries) after the arguments, for SetUnitProperties. systemd clears the
// list when there are no entries.
Result<std::string> render_device_allow(const Call& call, const std::vector<DeviceEntry>& entries,
                                        std::uint32_t serial);

struct Message {
  enum class Kind : std::uint8_t { call, answer, error, signal };

  Kind kind = Kind::signal;
  std::uint32_t reply_to = 0;
  std::string sender;
  std::string interface;
  std::string member;              // an error's name
  std::vector<std::string> texts;  // all strings of the body in order, at any depth
  std::vector<bool> flags;
};

// Length of the first message in bytes; 0 while too few have arrived to tell. Fails if they are no message, or one of
// more than 16 MiB.
Result<std::size_t> length_of_first(std::string_view bytes);
Result<Message> parse_message(std::string_view bytes);  // exactly one

// The code for an error's name: no_such_file_or_directory for a unit that does not exist, permission_denied, …
std::errc code_of(std::string_view error_name);

}  // namespace hf::systemd
