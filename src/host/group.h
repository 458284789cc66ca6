// Group: the processes of one container, found by their cgroups.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/container/cgroup_name.h"
#include "core/container/container.h"
#include "kernel/files/host.h"
#include "kernel/process/process.h"

namespace hf::host {

struct Group {
  std::optional<container::ParsedCgroupName> name;  // absent: its path names none, but it has its own namespaces
  std::map<std::string, std::string> v1;            // the init process's paths
  std::optional<std::string> v2;
  container::Pid init;
  std::string lines;       // of /proc/PID/cgroup of the init process, when it was found
  std::string cgroup;      // the container's own cgroup, in the hierarchy that decides about devices
  bool is_shared = false;  // has no name, and processes of the host are in it: it may be a service with a sandbox
};

// Containers named by the paths of their cgroups, and the first processes of pid namespaces in other cgroups.
std::vector<Group> find_groups(const kernel::Host& host);

// The container whose cgroup this process is in, with the process as its init: nothing where the path names none.
std::optional<Group> find_group_of(const kernel::Host& host, container::Pid process);

}  // namespace hf::host
