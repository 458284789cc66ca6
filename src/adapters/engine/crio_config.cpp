#include "adapters/engine/crio_config.h"

#include "adapters/document/text.h"
#include "adapters/engine/toml_registration.h"

namespace hf::engine {
namespace {

using document::in_quotes;
using document::parse_toml;
using document::path_below;
using document::string_at;

const TomlPath kRuntime = {"crio", "runtime"};
const TomlPath kRuntimes = {"crio", "runtime", "runtimes"};

RegistrationPaths registration_paths() {
  const TomlPath entry = path_below(kRuntimes, kRuntimeName);
  return {entry, path_below(entry, "runtime_path"), path_below(kRuntime, "default_runtime")};
}

// CRI-O's whole configuration: a later file overrides an earlier one. Files that are no TOML are
// skipped: CRI-O reports them.
TomlValues merged(const std::vector<std::string>& texts) {
  TomlValues all;
  for (const std::string& text : texts) {
    for (const auto& [path, value] : parse_toml(text).value_or(TomlValues())) {
      all[path] = value;
    }
  }
  return all;
}

TomlValues monitor_settings_in(const TomlValues& values) {
  const TomlPath ours = path_below(kRuntimes, kRuntimeName);
  const std::string by_default = string_at(values, path_below(kRuntime, "default_runtime")).value_or("");
  for (const std::string& name : {by_default, std::string("runc"), std::string("crun")}) {
    const TomlValues found = name == kRuntimeName ? TomlValues() : rebased(values, path_below(kRuntimes, name), ours);
    TomlValues monitor;
    for (const char* key : {"monitor_path", "monitor_cgroup", "monitor_exec_cgroup", "monitor_env",
                            "allowed_annotations", "privileged_without_host_devices"}) {
      if (const auto value = found.find(path_below(ours, key)); value != found.end()) {
        monitor.insert(*value);
      }
    }
    if (!found.empty()) {
      return monitor;
    }
  }
  return {};
}

}  // namespace

Result<Edited> add_to_crio(std::string_view text, const Registration& registration,
                           const std::vector<std::string>& others) {
  TRY(check_program_path(registration.program));
  const RegistrationPaths ours = registration_paths();
  const TomlValues values = TRY(parse_toml(text));
  std::vector<std::string> all = others;
  all.emplace_back(text);
  TomlValues entry = rebased(values, ours.entry, ours.entry);
  entry.merge(monitor_settings_in(merged(all)));
  entry[ours.program] = in_quotes(registration.program);
  entry.emplace(path_below(ours.entry, "runtime_type"), in_quotes("oci"));
  return Edited{TRY(add_registration(text, ours, entry, registration)), {}};
}

Result<std::string> remove_from_crio(std::string_view text, Before before) {
  return remove_registration(text, registration_paths(), before);
}

Result<std::optional<Registered>> find_in_crio(std::string_view text) {
  return find_registration(text, registration_paths());
}

bool is_empty_toml(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

}  // namespace hf::engine
