#include "adapters/config/runtime_options.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/text.h"

namespace hf::config {
namespace {

Result<Trust> parse_trust(Yaml value) {
  constexpr std::array<std::pair<std::string_view, Trust>, 4> kTrusts = {{{"never", Trust::never},
                                                                          {"privileged", Trust::privileged},
                                                                          {"allocated", Trust::allocated},
                                                                          {"always", Trust::always}}};
  const std::string text = TRY(scalar_of(value, "runtime.environment"));
  const auto* const found = std::ranges::find(kTrusts, text, &std::pair<std::string_view, Trust>::first);
  if (found == kTrusts.end()) {
    return malformed("runtime.environment: " + quote(text) + " is none of never, privileged, allocated, always");
  }
  return found->second;
}

Result<std::vector<std::string>> parse_programs(Yaml list) {
  std::vector<std::string> programs;
  if (list.elements().empty()) {
    return malformed("runtime.programs wants a list of names or paths");
  }
  for (const Yaml entry : list.elements()) {
    std::string text = TRY(scalar_of(entry, "runtime.programs"));
    if (text.find('/') != std::string::npos && !text.starts_with('/')) {
      return malformed("runtime.programs: " + quote(text) + " is neither a name nor an absolute path");
    }
    programs.push_back(std::move(text));
  }
  return programs;
}

}  // namespace

Result<void> parse_runtime(Yaml node, RuntimeSettings& runtime) {
  if (!node) {
    return {};
  }
  TRY(check_keys(node, "runtime",
                 {"programs", "annotations", "mounts", "environment", "make_nodes", "driver_root", "log"}));
  if (node["programs"]) {
    runtime.programs = TRY(parse_programs(node["programs"]));
  }
  if (node["environment"]) {
    runtime.environment = TRY(parse_trust(node["environment"]));
  }
  for (const auto& [key, path] : {std::pair("driver_root", &runtime.driver_root), std::pair("log", &runtime.log)}) {
    if (node[key]) {
      *path = TRY(scalar_of(node[key], std::string("runtime.") + key));
      if (!path->starts_with('/')) {
        return malformed(std::string("runtime.") + key + " wants an absolute path");
      }
    }
  }
  TRY(read_switch(node, "runtime", "annotations", runtime.reads_annotations));
  TRY(read_switch(node, "runtime", "mounts", runtime.reads_mounts));
  return read_switch(node, "runtime", "make_nodes", runtime.creates_nodes);
}

Result<void> parse_cdi(Yaml node, CdiSettings& cdi) {
  if (!node) {
    return {};
  }
  TRY(check_keys(node, "cdi", {"file", "class", "hook"}));
  if (node["class"]) {
    cdi.device_class = TRY(scalar_of(node["class"], "cdi.class"));
  }
  if (node["hook"]) {
    cdi.hook = TRY(scalar_of(node["hook"], "cdi.hook"));
    if (!cdi.hook.starts_with('/')) {
      return malformed("cdi.hook wants an absolute path");
    }
  }
  if (node["file"]) {
    cdi.file = TRY(scalar_of(node["file"], "cdi.file"));
    const bool is_spec = cdi.file.ends_with(".yaml") || cdi.file.ends_with(".json");
    if (!cdi.file.starts_with('/') || !is_spec) {
      return malformed("cdi.file: " + quote(cdi.file) + " is no absolute path of a .yaml or .json file");
    }
  }
  return {};
}

}  // namespace hf::config
