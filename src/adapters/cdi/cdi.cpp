#include "adapters/cdi/cdi.h"

#include <algorithm>
#include <array>

#include "core/base/text.h"
#include "kernel/files/file.h"

namespace hf::cdi {
namespace {

constexpr std::array<const char*, 2> kDirectories = {"/etc/cdi", "/var/run/cdi"};  // in increasing precedence

// The spec that defines a device's name: the one in the directory of the highest precedence. `rival` is another spec of
// the same directory that defines it too.
struct Owner {
  const Spec* spec = nullptr;
  const Spec* rival = nullptr;
};
Owner owner_of(const std::vector<Spec>& specs, const std::string& kind, const std::string& device) {
  Owner owner;
  for (const Spec& spec : specs) {
    if (spec.kind != kind || !spec.devices.contains(device)) {
      continue;
    }
    const bool same_directory = owner.spec != nullptr && directory_of(owner.spec->file) == directory_of(spec.file);
    owner.rival = same_directory ? owner.spec : owner.rival;  // CDI: a conflict in one directory hides the name in all
    owner.spec = &spec;
  }
  return owner;
}

}  // namespace

Registry read_registry(const kernel::Host& host) {
  Registry registry;
  for (const char* directory : kDirectories) {
    for (const std::string& name : kernel::list_names(host.root.get(), kernel::below_root(directory))) {
      if (!name.ends_with(".yaml") && !name.ends_with(".json")) {
        continue;
      }
      const std::string file = std::string(directory) + "/" + name;
      const Result<std::string> text = kernel::read_trusted_file(host.root.get(), kernel::below_root(file));
      Result<Spec> spec = text ? parse_spec(*text, file) : Result<Spec>(std::unexpected(text.error()));
      if (spec) {
        registry.specs.push_back(*std::move(spec));
      } else {
        registry.broken.push_back({file, spec.error().message});
      }
    }
  }
  for (const Spec& spec : registry.specs) {
    for (const auto& [device, edits] : spec.devices) {
      const Owner owner = owner_of(registry.specs, spec.kind, device);
      if (owner.spec != &spec) {
        const bool is_conflict = directory_of(owner.spec->file) == directory_of(spec.file);
        registry.shadows.push_back({spec.kind + "=" + device, owner.spec->file, spec.file, is_conflict});
      }
    }
  }
  return registry;
}

bool Registry::is_effective(const Spec& spec, const std::string& device) const {
  const Owner owner = owner_of(specs, spec.kind, device);
  return owner.spec == &spec && owner.rival == nullptr;
}

std::vector<const container::ContainerEdits*> Registry::effective_edits(const Spec& spec) const {
  std::vector<const container::ContainerEdits*> effective;
  for (const auto& [name, edits] : spec.devices) {
    if (is_effective(spec, name)) {
      effective.push_back(&edits);
    }
  }
  if (!effective.empty() || spec.devices.empty()) {
    effective.push_back(&spec.all);
  }
  return effective;
}

std::optional<container::ContainerEdits> Registry::edits_of(const std::string& name) const {
  const std::size_t equals = name.find('=');
  if (equals == std::string::npos) {
    return std::nullopt;
  }
  const Owner owner = owner_of(specs, name.substr(0, equals), name.substr(equals + 1));
  if (owner.spec == nullptr || owner.rival != nullptr) {
    return std::nullopt;
  }
  container::ContainerEdits edits = owner.spec->all;
  append(edits, owner.spec->devices.at(name.substr(equals + 1)));
  return edits;
}

}  // namespace hf::cdi
