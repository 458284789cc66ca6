#include "adapters/systemd/device_allow.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/text.h"

namespace hf::systemd {
namespace {

using device::Access;

// systemd: UNIT_NAME_MAX counts the zero at the end (src/basic/unit-name.h).
constexpr std::size_t kLongestName = 255;
constexpr std::string_view kNameCharacters =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ:-_.\\@";  // VALID_CHARS_WITH_AT

constexpr std::array<std::pair<std::string_view, const char*>, 6> kInterfaces = {
    {{".scope", "org.freedesktop.systemd1.Scope"},
     {".service", "org.freedesktop.systemd1.Service"},
     {".slice", "org.freedesktop.systemd1.Slice"},
     {".socket", "org.freedesktop.systemd1.Socket"},
     {".mount", "org.freedesktop.systemd1.Mount"},
     {".swap", "org.freedesktop.systemd1.Swap"}}};

// The access that the unit's list grants for exactly this path.
Access access_for(const UnitDevices& unit, const std::string& path) {
  Access access = Access::none;
  for (const std::string& entry : unit.allow) {
    if (entry.starts_with(path + " ")) {
      access = access | device::parse_access(trim(entry).substr(path.size() + 1)).value_or(Access::none);
    }
  }
  return access;
}

}  // namespace

std::string path_of(const device::Device& device) {
  const char* directory = device.kind == device::Kind::block ? "/dev/block/" : "/dev/char/";
  return directory + std::to_string(device.major) + ":" + std::to_string(device.minor);
}

std::string to_string(const DeviceEntry& entry) {
  return path_of(entry.device) + " " + device::to_string(entry.access);
}

Result<std::string> interface_of(std::string_view unit) {
  const bool is_name = unit.size() <= kLongestName &&
                       unit.find_first_not_of(kNameCharacters) == std::string_view::npos && !unit.starts_with('@') &&
                       !unit.starts_with('.');
  const auto* const found =
      std::ranges::find_if(kInterfaces, [&](const auto& each) { return unit.ends_with(each.first); });
  if (!is_name || found == kInterfaces.end()) {
    return fail(std::errc::invalid_argument, quote(unit) + " is no name of a unit with processes");
  }
  return std::string(found->second);
}

Result<std::vector<DeviceEntry>> plan_additions(const UnitDevices& unit, const std::vector<DeviceEntry>& wanted) {
  std::vector<DeviceEntry> additions;
  for (const DeviceEntry& entry : wanted) {
    // systemd reads an entry without access bits as full access.
    if (entry.access == Access::none || entry.device.major > device::kLastMajor ||
        entry.device.minor > device::kLastMinor) {
      return fail(std::errc::invalid_argument, "allow '" + to_string(entry) + "': no such device or access");
    }
    const auto same = std::ranges::find(additions, entry.device, &DeviceEntry::device);
    if (same != additions.end()) {
      same->access = same->access | entry.access;
    } else {
      additions.push_back(entry);
    }
  }
  if (unit.policy == DevicePolicy::automatic && unit.allow.empty()) {
    return std::vector<DeviceEntry>();
  }
  std::erase_if(additions, [&unit](DeviceEntry& entry) {
    const Access has = access_for(unit, path_of(entry.device));
    entry.access = entry.access | has;
    return entry.access == has;
  });
  return additions;
}

}  // namespace hf::systemd
