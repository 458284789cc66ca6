// Spec: one file of the Container Device Interface, versions 0.3.0 to 1.1.0, and what is to be said against it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/container/edits.h"

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

// YAML or JSON. A field that no version has is an error, as it is for the engines; of a version newer than those we
// know, it is passed over.
Result<Spec> parse_spec(std::string_view text, const std::string& file);
Result<Spec> parse_json_spec(std::string_view text, const std::string& file);  // without the library for YAML

// What the engines refuse a spec for though it can be read: a field that is newer than the version it names, a version
// that nobody knows, a name with wrong letters, a device without edits.
std::vector<std::string> faults_of(const Spec& spec);

// The lowest version that has everything the spec uses, and for what.
struct Need {
  std::string version;
  std::string what;
};
Need need_of(const Spec& spec);

// A spec to be written. Its version is the lowest that will do: engines refuse those they do not know.
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
