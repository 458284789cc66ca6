// Message: D-Bus messages as bytes, made and read by libdbus.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/systemd/device_allow.h"
#include "core/base/result.h"

namespace hf::systemd {

// A call of a method that takes texts. Path and arguments may be anything, and are looked at.
struct Call {
  const char* destination;
  std::string path;
  const char* interface;
  const char* member;
  std::vector<std::string> arguments;
};

Result<std::string> render_call(const Call& call, std::uint32_t serial);

// The same with (runtime = true, DeviceAllow = entries) after the texts, for SetUnitProperties. systemd empties the
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
  std::vector<std::string> texts;  // in their order, wherever they stand in it
  std::vector<bool> flags;
};

// Bytes of the first message; 0 where too few came to say. Fails where they are no message, or one of more than 16 MiB.
Result<std::size_t> length_of_first(std::string_view bytes);
Result<Message> parse_message(std::string_view bytes);  // exactly one

// The code for an error's name: no_such_file_or_directory for a unit that is not there, permission_denied, …
std::errc code_of(std::string_view error_name);

}  // namespace hf::systemd
