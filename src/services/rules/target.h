// Target: what a person asks about: a process, a cgroup, a program, or a program in a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/result.h"
#include "core/container/cgroup_path.h"
#include "core/container/gate.h"

namespace hf::rules {

struct CgroupDirectory {
  std::string path;
};
struct FilePath {
  std::string path;
};
using Target = std::variant<container::Pid, CgroupDirectory, container::ProgramId, FilePath>;

Result<Target> parse_target(std::string_view text);  // "pid:N", "cgroup:PATH", "program:ID", "file:PATH"

}  // namespace hf::rules
