#include "adapters/cdi/cdi.h"

#include <algorithm>
#include <array>

#include <yaml-cpp/yaml.h>

#include "core/base/text.h"
#include "kernel/file.h"

namespace hf::cdi {
namespace {

constexpr std::array<const char*, 2> kFolders = {"/etc/cdi", "/var/run/cdi"};  // the stronger last

std::string text_of(const YAML::Node& node, const char* key) {
  const YAML::Node entry = node.IsMap() ? node[key] : YAML::Node();
  return entry && entry.IsScalar() ? entry.Scalar() : std::string();
}

Result<std::optional<std::uint32_t>> number_of(const YAML::Node& node, const char* key, std::uint32_t limit) {
  const std::string text = text_of(node, key);
  if (text.empty()) {
    return std::nullopt;
  }
  const std::optional<std::uint32_t> number = parse_number<std::uint32_t>(text);
  if (!number || *number > limit) {
    return fail(std::errc::invalid_argument, std::string(key) + " " + quote(text) + " is not a device's number");
  }
  return number;
}

// Aliases make a small file stand for a huge one: what it stands for is counted.
using Budget = std::size_t;
constexpr Budget kMostEntries = 100'000;

Result<void> spend(Budget& left, std::size_t entries) {
  if (entries > left) {
    return fail(std::errc::value_too_large, "more than " + std::to_string(kMostEntries) + " entries");
  }
  left -= entries;
  return {};
}

Result<Edits> parse_edits(const YAML::Node& edits, Budget& left) {
  Edits parsed;
  TRY(spend(left, 1));
  if (!edits || !edits.IsMap()) {
    return parsed;
  }
  const YAML::Node nodes = edits["deviceNodes"];
  TRY(spend(left, nodes && nodes.IsSequence() ? nodes.size() : 0));
  for (std::size_t i = 0; nodes && nodes.IsSequence() && i < nodes.size(); ++i) {
    SpecNode node;
    node.path = text_of(nodes[i], "path");
    if (!node.path.starts_with('/')) {
      return fail(std::errc::invalid_argument, "deviceNodes: path " + quote(node.path) + " is not absolute");
    }
    node.host_path = text_of(nodes[i], "hostPath");
    const std::string type = text_of(nodes[i], "type");
    node.kind = type == "b"                  ? std::optional(device::Kind::block)
                : type == "c" || type == "u" ? std::optional(device::Kind::character)
                                             : std::nullopt;
    node.major = TRY(number_of(nodes[i], "major", device::kLastMajor));
    node.minor = TRY(number_of(nodes[i], "minor", device::kLastMinor));
    node.permissions = text_of(nodes[i], "permissions");
    parsed.nodes.push_back(std::move(node));
  }
  const YAML::Node mounts = edits["mounts"];
  TRY(spend(left, mounts && mounts.IsSequence() ? mounts.size() : 0));
  for (std::size_t i = 0; mounts && mounts.IsSequence() && i < mounts.size(); ++i) {
    parsed.mounts.push_back(text_of(mounts[i], "hostPath"));
  }
  return parsed;
}

Result<Spec> parse_document(const YAML::Node& document, const std::string& file) {
  Spec spec;
  spec.file = file;
  spec.version = text_of(document, "cdiVersion");
  spec.kind = text_of(document, "kind");
  if (spec.version.empty() || spec.kind.find('/') == std::string::npos) {
    return fail(std::errc::invalid_argument, "no cdiVersion, or no kind of the form vendor/class");
  }
  Budget left = kMostEntries;
  spec.all = TRY(parse_edits(document["containerEdits"], left));
  const YAML::Node devices = document["devices"];
  if (devices && !devices.IsSequence() && !devices.IsNull()) {
    return fail(std::errc::invalid_argument, "devices is not a list");
  }
  for (std::size_t i = 0; devices && devices.IsSequence() && i < devices.size(); ++i) {
    const std::string name = text_of(devices[i], "name");
    if (name.empty()) {
      return fail(std::errc::invalid_argument, "a device without a name");
    }
    if (spec.devices.contains(name)) {
      return fail(std::errc::invalid_argument, "two devices are called " + quote(name));
    }
    spec.devices[name] = TRY(parse_edits(devices[i]["containerEdits"], left));
  }
  return spec;
}

void add_all(Edits& edits, const Edits& more) {
  edits.nodes.insert(edits.nodes.end(), more.nodes.begin(), more.nodes.end());
  edits.mounts.insert(edits.mounts.end(), more.mounts.begin(), more.mounts.end());
}

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

Result<Spec> parse_spec(std::string_view text, const std::string& file) {
  const auto broken = [&file](const std::string& why) {
    return fail(std::errc::invalid_argument, "parse CDI spec " + file + ": " + why);
  };
  try {
    const YAML::Node document = YAML::Load(std::string(text));
    if (!document.IsMap()) {
      return broken("not a map");
    }
    Result<Spec> spec = parse_document(document, file);
    return spec ? std::move(spec) : broken(spec.error().message);
  } catch (const YAML::Exception& error) {
    return broken(error.what());
  }
}

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

std::optional<Edits> Registry::resolve(const std::string& name) const {
  const std::size_t equals = name.find('=');
  if (equals == std::string::npos) {
    return std::nullopt;
  }
  const Owner owner = owner_of(specs, name.substr(0, equals), name.substr(equals + 1));
  if (owner.spec == nullptr || owner.rival != nullptr) {
    return std::nullopt;
  }
  Edits edits = owner.spec->devices.at(name.substr(equals + 1));
  add_all(edits, owner.spec->all);
  return edits;
}

}  // namespace hf::cdi
