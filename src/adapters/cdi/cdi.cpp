#include "adapters/cdi/cdi.h"

#include <algorithm>
#include <array>

#include "core/base/text.h"
#include "kernel/file.h"

namespace hf::cdi {
namespace {

constexpr std::array<const char*, 2> kFolders = {"/etc/cdi", "/var/run/cdi"};  // the stronger last

std::string folder_of(const std::string& file) { return file.substr(0, file.rfind('/')); }

// Which spec a name belongs to: the one of the strongest folder, unless two of one folder have it.
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
    const bool same_folder = owner.spec != nullptr && folder_of(owner.spec->file) == folder_of(spec.file);
    owner.rival = same_folder ? owner.spec : owner.rival;  // CDI: a conflict below takes the name from all
    owner.spec = &spec;
  }
  return owner;
}

}  // namespace

Registry read_registry(const kernel::Host& host) {
  Registry registry;
  for (const char* folder : kFolders) {
    for (const std::string& name : kernel::list_names(host.root.get(), kernel::below_root(folder))) {
      if (!name.ends_with(".yaml") && !name.ends_with(".json")) {
        continue;
      }
      const std::string file = std::string(folder) + "/" + name;
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
        const bool is_conflict = folder_of(owner.spec->file) == folder_of(spec.file);
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
