#include "kernel/files/host.h"

#include <fcntl.h>

#include "core/base/text.h"
#include "kernel/files/file.h"

namespace hf::kernel {

Result<Host> open_host(const std::string& root) {
  Host host = TRY(open_host_without_cgroups(root));
  const std::string mountinfo = TRY(read_text(host.root.get(), "proc/self/mountinfo"));
  for (container::CgroupMount& mount : container::parse_cgroup_mounts(mountinfo)) {
    std::optional<container::CgroupMount>& slot = mount.hierarchy == container::Hierarchy::v1 ? host.v1 : host.v2;
    if (!slot) {
      slot = std::move(mount);
    }
  }
  if (!host.v1 && !host.v2) {
    return fail(std::errc::no_such_device, "find cgroups: neither cgroup2 nor the v1 devices controller is mounted");
  }
  return host;
}

Result<Host> open_host_without_cgroups(const std::string& root) {
  Host host;
  host.root = TRY(open_directory(AT_FDCWD, root));
  return host;
}

std::string layout_of(const Host& host) { return host.v1 && host.v2 ? "hybrid" : host.v1 ? "v1" : "v2"; }

Result<std::string> read_kernel_release(const Host& host) {
  const std::string text = TRY(read_text(host.root.get(), "proc/sys/kernel/osrelease"));
  return std::string(trim(text));
}

std::string below_root(const std::string& path) {
  const std::size_t start = path.find_first_not_of('/');
  return start == std::string::npos ? "." : path.substr(start);
}

}  // namespace hf::kernel
