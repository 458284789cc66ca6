// Device: a device by its kind and device number; Request: the access that a process asks for.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/device/access.h"

namespace hf::device {

// Numbered as the kernel numbers them (BPF_DEVCG_DEV_*); core/bpf/instruction.cpp asserts it.
enum class Kind : std::uint8_t { block = 1, character = 2 };

inline constexpr Kind kKinds[] = {Kind::block, Kind::character};

struct Device {
  Kind kind = Kind::character;
  std::uint32_t major = 0;
  std::uint32_t minor = 0;

  friend auto operator<=>(const Device&, const Device&) = default;
};

struct Request {
  Device device;
  Access access = Access::none;

  friend bool operator==(const Request&, const Request&) = default;
};

// Kernel: dev_t holds 12 bits of major and 20 of minor (include/linux/kdev_t.h), so no device has a larger one.
inline constexpr std::uint32_t kLastMajor = (1U << 12) - 1;
inline constexpr std::uint32_t kLastMinor = (1U << 20) - 1;

char kind_character(Kind kind);
Result<Request> parse_request(std::string_view text);  // "c:195:0:rw"
std::string to_string(const Device& device);           // "c 195:0"
std::string to_string(const Request& request);         // "c:195:0:rw"

}  // namespace hf::device
