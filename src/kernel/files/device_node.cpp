#include "kernel/files/device_node.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/files/file.h"

namespace hf::kernel {
namespace {

device::Device device_of(const struct stat& status) {
  const device::Kind kind = S_ISBLK(status.st_mode) ? device::Kind::block : device::Kind::character;
  return {kind, ::major(status.st_rdev), ::minor(status.st_rdev)};
}

std::string sysfs_directory(const device::Device& device) {
  return std::string("sys/dev/") + (device.kind == device::Kind::block ? "block/" : "char/") +
         std::to_string(device.major) + ":" + std::to_string(device.minor);
}

std::optional<device::Device> parse_numbers(device::Kind kind, std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto major = parse_number<std::uint32_t>(text.substr(0, colon));
  const auto minor =
      colon == std::string_view::npos ? std::nullopt : parse_number<std::uint32_t>(text.substr(colon + 1));
  return major && minor ? std::optional(device::Device{kind, *major, *minor}) : std::nullopt;
}

}  // namespace

std::vector<device::Device> read_device_nodes(const std::string& directory) {
  namespace fs = std::filesystem;
  std::vector<device::Device> devices;
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
    struct stat status{};
    if (::lstat(entry->path().c_str(), &status) < 0 || (!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode))) {
      continue;
    }
    devices.push_back(device_of(status));
  }
  std::ranges::sort(devices);
  devices.erase(std::ranges::unique(devices).begin(), devices.end());
  return devices;
}

std::optional<NodeOnHost> read_node(const Host& host, const std::string& path) {
  struct stat status{};
  if (::fstatat(host.root.get(), below_root(path).c_str(), &status, 0) < 0 ||
      (!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode))) {
    return std::nullopt;
  }
  return NodeOnHost{device_of(status), status.st_mode & 07777U, status.st_uid, status.st_gid};
}

std::vector<KnownDevice> read_known_devices(const Host& host) {
  std::vector<KnownDevice> known;
  for (const device::Kind kind : device::kKinds) {
    const std::string directory = kind == device::Kind::block ? "sys/dev/block" : "sys/dev/char";
    for (const std::string& name : list_names(host.root.get(), directory)) {
      const std::optional<device::Device> device = parse_numbers(kind, name);
      const Result<std::string> text =
          read_text(host.root.get(), std::string(directory).append("/").append(name).append("/uevent"));
      if (!device || !text) {
        continue;
      }
      for (const std::string_view line : split(*text, '\n')) {
        if (line.starts_with("DEVNAME=")) {
          known.push_back({"/dev/" + std::string(line.substr(8)), *device});
        }
      }
    }
  }
  return known;
}

std::string read_hardware(const Host& host, const device::Device& device, const std::string& file) {
  const Result<std::string> text = read_text(host.root.get(), sysfs_directory(device) + "/device/" + file);
  return text ? std::string(trim(*text)) : std::string();
}

}  // namespace hf::kernel
