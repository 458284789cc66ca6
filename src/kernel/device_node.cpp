#include "kernel/device_node.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace hf::kernel {

std::vector<device::Device> read_device_nodes(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<device::Device> devices;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
    struct stat status{};
    if (::lstat(entry->path().c_str(), &status) < 0 || (!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode))) {
      continue;
    }
    const device::Kind kind = S_ISBLK(status.st_mode) ? device::Kind::block : device::Kind::character;
    devices.push_back({kind, ::major(status.st_rdev), ::minor(status.st_rdev)});
  }
  std::ranges::sort(devices);
  devices.erase(std::ranges::unique(devices).begin(), devices.end());
  return devices;
}

}  // namespace hf::kernel
