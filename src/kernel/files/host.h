// Host: the machine as seen from one root directory: "/" in production, a fake directory tree in tests.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/container/cgroup/cgroup_path.h"
#include "kernel/files/fd.h"

namespace hf::kernel {

struct Host {
  Fd root;
  std::optional<container::CgroupMount> v1;  // the devices hierarchy
  std::optional<container::CgroupMount> v2;

  [[nodiscard]] const std::optional<container::CgroupMount>& mount_of(container::Hierarchy hierarchy) const {
    return hierarchy == container::Hierarchy::v1 ? v1 : v2;
  }
};

// Fails where neither hierarchy is mounted.
Result<Host> open_host(const std::string& root = "/");

// Needs no cgroups: a machine image that is being built may have none.
Result<Host> open_host_without_cgroups(const std::string& root = "/");

// v1 alone, v2 alone, or both: "v1", "v2", "hybrid".
std::string layout_of(const Host& host);

Result<std::string> read_kernel_release(const Host& host);

// A path of the host relative to host.root, as openat takes it.
std::string below_root(const std::string& path);

}  // namespace hf::kernel
