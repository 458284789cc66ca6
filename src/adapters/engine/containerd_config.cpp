#include "adapters/engine/containerd_config.h"

#include <array>

#include "adapters/document/text.h"
#include "adapters/document/toml_text.h"
#include "adapters/engine/toml_registration.h"

namespace hf::engine {
namespace {

using document::in_quotes;
using document::parse_toml;
using document::path_below;
using document::scan_toml;
using document::string_at;

const TomlPath kVersion = {"version"};
constexpr const char* kType = "runtime_type";
constexpr const char* kShim = "io.containerd.runc.v2";
constexpr std::array<const char*, 2> kAnnotations = {"pod_annotations", "container_annotations"};
constexpr const char* kCdiNames = R"([ "cdi.k8s.io/*" ])";

// The table in which the CRI plugin has its runtimes, for each version of the file.
Result<TomlPath> plugin_of(const TomlValues& values) {
  const auto version = values.find(kVersion);
  const std::string number = version == values.end() ? "1" : version->second;
  if (number == "1") {
    return TomlPath{"plugins", "cri", "containerd"};
  }
  if (number == "2") {
    return TomlPath{"plugins", "io.containerd.grpc.v1.cri", "containerd"};
  }
  if (number == "3") {
    return TomlPath{"plugins", "io.containerd.cri.v1.runtime", "containerd"};
  }
  return fail(std::errc::invalid_argument, "version " + number + " of the file is none that holdfast knows (1, 2, 3)");
}

TomlPath runtime_in(const TomlPath& plugin, const std::string& name) {
  return path_below(path_below(plugin, "runtimes"), name);
}

TomlPath program_in(const TomlPath& runtime) { return path_below(path_below(runtime, "options"), "BinaryName"); }

RegistrationPaths paths_in(const TomlPath& plugin) {
  const TomlPath entry = runtime_in(plugin, kRuntimeName);
  return {entry, program_in(entry), path_below(plugin, "default_runtime_name")};
}

// The values to start from: those of the existing holdfast entry, else of runc, else of the default runtime.
TomlValues template_for(const TomlValues& values, const TomlPath& plugin) {
  const TomlPath ours = runtime_in(plugin, kRuntimeName);
  const std::string by_default = string_at(values, path_below(plugin, "default_runtime_name")).value_or("");
  for (const std::string& name : {std::string(kRuntimeName), std::string("runc"), by_default}) {
    TomlValues found = rebased(values, runtime_in(plugin, name), ours);
    const std::string type = string_at(found, path_below(ours, kType)).value_or(kShim);
    // The options of other shims, such as Kata's, have other meanings.
    if (!found.empty() && type.starts_with("io.containerd.runc.")) {
      return found;
    }
  }
  return {};
}

TomlValues entry_for(const TomlValues& values, const TomlPath& plugin, const Registration& registration) {
  const TomlPath ours = runtime_in(plugin, kRuntimeName);
  TomlValues entry = template_for(values, plugin);
  entry.erase(path_below(ours, "runtime_engine"));  // names the program for old shims
  entry.emplace(path_below(ours, kType), in_quotes(kShim));
  entry[program_in(ours)] = in_quotes(registration.program);
  for (const char* key : kAnnotations) {
    if (registration.passes_annotations) {
      entry[path_below(ours, key)] = kCdiNames;
    }
  }
  return entry;
}

std::vector<std::string> notes_on(const TomlValues& values) {
  const auto disabled = values.find({"disabled_plugins"});
  const bool is_disabled = disabled != values.end() && disabled->second.find("cri") != std::string::npos;
  return is_disabled ? std::vector<std::string>{"the file disables the plugin for Kubernetes (disabled_plugins): "
                                                "kubelet cannot use any runtime of it"}
                     : std::vector<std::string>{};
}

bool has_content(const TomlValues& values, std::string_view text) {
  return !values.empty() || !scan_toml(text).empty();
}

std::string with_version(std::string_view text, std::string_view version) {
  std::string old(text);
  old += old.empty() || old.ends_with('\n') ? "" : "\n";
  return old.append("version = ").append(version).append("\n");
}

// `mains`: the values of the files that import this one.
Result<Edited> add_entry(std::string_view text, const Registration& registration, TomlValues mains) {
  TomlValues values = TRY(parse_toml(text));
  const TomlPath plugin = TRY(plugin_of(values));
  values.merge(mains);
  const TomlValues entry = entry_for(values, plugin, registration);
  return Edited{TRY(add_registration(text, paths_in(plugin), entry, registration)), notes_on(values)};
}

// Files that are no TOML are skipped: containerd reports them.
TomlValues merged(const std::vector<std::string>& texts) {
  TomlValues all;
  for (const std::string& text : texts) {
    all.merge(parse_toml(text).value_or(TomlValues()));
  }
  return all;
}

std::string version_of(const TomlValues& main, std::string_view unknown) {
  const auto found = main.find(kVersion);
  return found != main.end() ? found->second : std::string(main.empty() ? unknown : "1");
}

}  // namespace

Result<Edited> add_to_containerd(std::string_view text, const Registration& registration) {
  return add_to_containerd_drop_in(text, registration, {}, "2");
}

Result<Edited> add_to_containerd_drop_in(std::string_view text, const Registration& registration,
                                         const std::vector<std::string>& mains, std::string_view version) {
  TRY(check_program_path(registration.program));
  const TomlValues main = merged(mains);
  if (has_content(TRY(parse_toml(text)), text)) {
    return add_entry(text, registration, main);
  }
  const std::string number = version_of(main, version);
  if (!mains.empty() && number != "3") {
    return fail(std::errc::invalid_argument,
                "the main file has version " + number +
                    ": containerd 1 takes a drop-in's settings of a plugin for all of them, and would lose those of "
                    "the main file: register in the main file, or in the template that it is made from");
  }
  return add_entry(with_version(text, number), registration, main);
}

Result<std::string> remove_from_containerd(std::string_view text, Before before) {
  const TomlPath plugin = TRY(plugin_of(TRY(parse_toml(text))));
  return remove_registration(text, paths_in(plugin), before);
}

Result<std::optional<Registered>> find_in_containerd(std::string_view text) {
  const TomlValues values = TRY(parse_toml(text));
  const TomlPath plugin = TRY(plugin_of(values));
  std::optional<Registered> found = TRY(find_registration(text, paths_in(plugin)));
  if (found) {
    const auto annotations = values.find(path_below(runtime_in(plugin, kRuntimeName), kAnnotations[0]));
    found->passes_annotations = annotations != values.end() && annotations->second.contains("cdi.k8s.io");
  }
  return found;
}

bool is_empty_containerd_config(std::string_view text) {
  const Result<TomlValues> values = parse_toml(text);
  return values && (values->empty() || (values->size() == 1 && values->contains(kVersion))) &&
         text.find('#') == std::string_view::npos;
}

}  // namespace hf::engine
