// State: the state files that runc and crun keep about a running container.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace hf::oci {

struct RuntimeState {
  std::string runtime;  // "runc", "crun"
  std::string id;
  std::int32_t pid = 0;
  std::optional<std::uint64_t> started_at;  // in clock ticks since boot; detects that the pid was reused
  std::string bundle;
  std::optional<bool> systemd_cgroup;
};

Result<RuntimeState> parse_runc_state(std::string_view json);   // state.json
Result<RuntimeState> parse_crun_status(std::string_view json);  // status

}  // namespace hf::oci
