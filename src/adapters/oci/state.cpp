#include "adapters/oci/state.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"

namespace hf::oci {
namespace {

using document::bool_at;
using document::Json;
using document::string_at;
using document::uint_at;

std::int32_t pid_at(const Json& object, const char* key) {
  return std::int32_t(uint_at(object, key, std::numeric_limits<std::int32_t>::max()).value_or(0));
}

}  // namespace

Result<RuntimeState> parse_runc_state(std::string_view json) {
  constexpr std::string_view kBundle = "bundle=";
  const Json file = TRY(document::parse_object(json, "runc's state.json"));
  const Json& config = document::object_at(file, "config");
  RuntimeState state;
  state.runtime = "runc";
  state.id = string_at(file, "id").value_or("");
  state.pid = pid_at(file, "init_process_pid");
  state.started_at = uint_at(file, "init_process_start");
  for (const std::string& label : document::strings_at(config, "labels")) {
    state.bundle = label.starts_with(kBundle) ? label.substr(kBundle.size()) : state.bundle;
  }
  const Json& cgroups = document::object_at(config, "cgroups");
  state.systemd_cgroup = bool_at(cgroups, "Systemd");
  state.systemd_cgroup = state.systemd_cgroup ? state.systemd_cgroup : bool_at(cgroups, "systemd");
  return state;
}

Result<RuntimeState> parse_crun_status(std::string_view json) {
  const Json file = TRY(document::parse_object(json, "crun's status"));
  RuntimeState state;
  state.runtime = "crun";
  state.pid = pid_at(file, "pid");
  state.started_at = uint_at(file, "process-start-time");
  state.bundle = string_at(file, "bundle").value_or("");
  state.systemd_cgroup = bool_at(file, "systemd-cgroup");
  return state;
}

}  // namespace hf::oci
