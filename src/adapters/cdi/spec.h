// Spec: one file of the Container Device Interface, versions 0.3.0 to 1.1.0, and its faults.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/container/entitlement/edits.h"

namespace hf::cdi {

using Annotations = std::map<std::string, std::string>;

struct Spec {
  std::string file;
  std::string kind;  // "nvidia.com/gpu"
  std::string version;
  container::ContainerEdits all;                             // for every device of the spec
  std::map<std::string, container::ContainerEdits> devices;  // by name
  Annotations annotations;
  std::map<std::string, Annotations> device_annotations;
};

// YAML or JSON. A field that no version has is an error, as it is for the engines; it is ignored in a spec of a version
// newer than those we know.
Result<Spec> parse_spec(std::string_view text, const std::string& file);

// Why the engines refuse a spec that can be parsed: a field that is newer than the version it names, an unknown
// version, an invalid character in a name, a device without edits.
std::vector<std::string> faults_of(const Spec& spec);

// The lowest version that has every feature the spec uses, and the feature that needs it.
struct RequiredVersion {
  std::string version;
  std::string what;
};
RequiredVersion required_version(const Spec& spec);

// The command, or the advice, that writes the spec's file again as this host is now.
std::string recreate_command(const Spec& spec);

// A spec to be written. It gets the lowest sufficient version: engines refuse versions they do not know.
struct NewSpec {
  std::string kind;
  container::ContainerEdits all;
  std::vector<std::pair<std::string, container::ContainerEdits>> devices;
};
std::string render_yaml(const NewSpec& spec);
std::string render_json(const NewSpec& spec);

// The edits alone, as the fields of a spec.
std::string render_json(const container::ContainerEdits& edits);
std::string render_yaml(const container::ContainerEdits& edits);

}  // namespace hf::cdi
