// Unit: what systemd has written down about a unit's devices, and so would put in force at the next daemon-reload.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/device/systemd_words.h"
#include "core/device/table.h"
#include "kernel/host.h"

namespace hf::systemd {

enum class DevicePolicy : std::uint8_t { automatic, closed, strict };

// A word systemd does not know changes nothing.
DevicePolicy policy_of(std::string_view word, DevicePolicy otherwise);

struct UnitDevices {
  DevicePolicy policy = DevicePolicy::automatic;
  std::vector<std::string> allow;   // DeviceAllow, in systemd's words
  std::vector<std::string> pinned;  // BPFProgram=device:…: programs systemd attaches besides
  std::vector<std::string> files;   // where it was read
};

// Reads one file of a unit on top of what earlier ones said; an empty DeviceAllow= forgets the list.
void apply_unit_file(std::string_view text, UnitDevices& unit);

// The unit with its drop-ins, as systemd lays them over each other. Absent where systemd has no file of it.
std::optional<UnitDevices> read_unit_devices(const kernel::Host& host, const std::string& unit);

// What systemd would let through: with no policy and no list, everything.
device::Table meaning(const UnitDevices& unit, const device::DeviceWords& words);

// Is systemd this host's first process?
bool is_running(const kernel::Host& host);

}  // namespace hf::systemd
