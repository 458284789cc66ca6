// Group: the processes of one container, found by their cgroups.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/container/cgroup_words.h"
#include "core/container/container.h"
#include "kernel/host.h"
#include "kernel/process.h"

namespace hf::node {

struct Group {
  std::optional<container::CgroupWords> words;  // absent: nothing in its path, but it has namespaces of its own
  std::map<std::string, std::string> v1;        // the init process's paths
  std::optional<std::string> v2;
  container::Pid init;
  std::string lines;       // of /proc/PID/cgroup of that process, when it was found
  std::string cgroup;      // the container's own, in the hierarchy that decides about devices
  bool is_shared = false;  // without a name, and with processes of the host in it: it may be a service with a sandbox
};

// Containers by what the paths of their cgroups say, and the first processes of pid namespaces in other cgroups.
std::vector<Group> find_groups(const kernel::Host& host);

// The container whose cgroup this process is in, with the process as its first: nothing where the path names none.
std::optional<Group> find_group_of(const kernel::Host& host, container::Pid process);

}  // namespace hf::node
