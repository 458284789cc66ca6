// Target: what rules are asked for: a process, a cgroup, a program, a program in a file, or a container.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/result.h"
#include "core/container/cgroup/cgroup_path.h"
#include "core/container/container.h"
#include "core/container/gate/gate.h"

namespace hf::rules {

struct CgroupDirectory {
  std::string path;
};
struct FilePath {
  std::string path;
};
// A container is changed only through a handle that was checked to be this very container, and only in its own cgroups.
using Target = std::variant<container::Pid, CgroupDirectory, container::ProgramId, FilePath, container::Container>;

struct NamedTarget {
  std::string text;
  Target target;
};

Result<Target> parse_target(std::string_view text);  // "pid:N", "cgroup:PATH", "program:ID", "file:PATH"

}  // namespace hf::rules
