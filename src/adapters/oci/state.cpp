#include "adapters/oci/state.h"

#include <limits>

#include <nlohmann/json.hpp>

namespace hf::oci {
namespace {

using Json = nlohmann::json;

Result<Json> parse_object(std::string_view text, const char* what) {
  Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded() || !document.is_object()) {
    return fail(std::errc::invalid_argument, std::string("parse ") + what + ": not a JSON object");
  }
  return document;
}

std::string text_of(const Json& object, const char* key) {
  const auto entry = object.find(key);
  return entry != object.end() && entry->is_string() ? entry->get<std::string>() : std::string();
}

std::int32_t pid_of(const Json& object, const char* key) {
  const auto entry = object.find(key);
  const bool fits = entry != object.end() && entry->is_number_integer() && *entry > 0 &&
                    *entry <= std::numeric_limits<std::int32_t>::max();
  return fits ? entry->get<std::int32_t>() : 0;
}

std::optional<std::uint64_t> ticks_of(const Json& object, const char* key) {
  const auto entry = object.find(key);
  const bool fits = entry != object.end() && entry->is_number_unsigned();
  return fits ? std::optional(entry->get<std::uint64_t>()) : std::nullopt;
}

std::optional<bool> flag_of(const Json& object, const char* key) {
  const auto entry = object.find(key);
  return entry != object.end() && entry->is_boolean() ? std::optional(entry->get<bool>()) : std::nullopt;
}

}  // namespace

Result<RuntimeState> parse_runc_state(std::string_view json) {
  const Json document = TRY(parse_object(json, "runc's state.json"));
  RuntimeState state;
  state.runtime = "runc";
  state.id = text_of(document, "id");
  state.pid = pid_of(document, "init_process_pid");
  state.started_at = ticks_of(document, "init_process_start");
  const auto config = document.find("config");
  if (config == document.end() || !config->is_object()) {
    return state;
  }
  if (const auto labels = config->find("labels"); labels != config->end() && labels->is_array()) {
    for (const Json& label : *labels) {
      constexpr std::string_view kBundle = "bundle=";
      const std::string text = label.is_string() ? label.get<std::string>() : std::string();
      state.bundle = text.starts_with(kBundle) ? text.substr(kBundle.size()) : state.bundle;
    }
  }
  if (const auto cgroups = config->find("cgroups"); cgroups != config->end() && cgroups->is_object()) {
    state.systemd_cgroup = flag_of(*cgroups, "Systemd");
    state.systemd_cgroup = state.systemd_cgroup ? state.systemd_cgroup : flag_of(*cgroups, "systemd");
  }
  return state;
}

Result<RuntimeState> parse_crun_status(std::string_view json) {
  const Json document = TRY(parse_object(json, "crun's status"));
  RuntimeState state;
  state.runtime = "crun";
  state.pid = pid_of(document, "pid");
  state.started_at = ticks_of(document, "process-start-time");
  state.bundle = text_of(document, "bundle");
  state.systemd_cgroup = flag_of(document, "systemd-cgroup");
  state.scope = text_of(document, "scope");
  return state;
}

}  // namespace hf::oci
