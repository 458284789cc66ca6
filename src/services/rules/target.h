// Target: what a person asks about: a process, a cgroup, a program, or a program in a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/result.h"
#include "core/container/cgroup_path.h"
#include "core/container/container.h"
#include "core/container/gate.h"

namespace hf::rules {

struct CgroupDirectory {
  std::string path;
};
struct FilePath {
  std::string path;
};
// A container is acted on through a handle that is checked to be this very one, and only in cgroups of its own.
using Target = std::variant<container::Pid, CgroupDirectory, container::ProgramId, FilePath, container::Container>;

struct NamedTarget {
  std::string text;
  Target target;
};

Result<Target> parse_target(std::string_view text);  // "pid:N", "cgroup:PATH", "program:ID", "file:PATH"

}  // namespace hf::rules
