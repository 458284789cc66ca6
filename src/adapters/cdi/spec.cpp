#include "adapters/cdi/spec.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "adapters/cdi/decode.h"
#include "adapters/cdi/version.h"
#include "adapters/cdi/yaml_to_json.h"
#include "core/base/text.h"

namespace hf::cdi {
namespace {

using container::ContainerEdits;

Result<Spec> with_file(Result<Spec> spec, const std::string& file) {
  if (!spec) {
    return fail(spec.error().code, "parse CDI spec " + file + ": " + spec.error().message);
  }
  spec->file = file;
  return spec;
}

bool is_letter(char character) { return std::isalpha(static_cast<unsigned char>(character)) != 0; }
bool is_alphanumeric(char character) { return std::isalnum(static_cast<unsigned char>(character)) != 0; }

// Letters and digits at both ends, and between them also characters of `others`.
bool is_name(std::string_view text, std::string_view others) {
  return !text.empty() && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         std::ranges::all_of(text, [others](char character) {
           return is_alphanumeric(character) || others.find(character) != std::string_view::npos;
         });
}

struct Feature {
  Version since;
  std::string what;
};

void raise(Feature& highest, const Version& since, const std::string& what) {
  if (since > highest.since) {
    highest = {since, what};
  }
}

void raise_for(Feature& highest, const ContainerEdits& edits) {
  for (const container::MountEdit& mount : edits.mounts) {
    raise(highest, mount.type.empty() ? Version() : Version{0, 4, 0}, "the type of a mount");
  }
  for (const container::NodeEdit& node : edits.nodes) {
    raise(highest, node.host_path.empty() ? Version() : Version{0, 5, 0}, "hostPath of a device node");
  }
  raise(highest, edits.gids.empty() ? Version() : Version{0, 7, 0}, "additionalGIDs");
  if (edits.intel_rdt) {
    const bool is_new = !edits.intel_rdt->schemata.empty() || edits.intel_rdt->enables_monitoring;
    raise(highest, is_new ? Version{1, 1, 0} : Version{0, 7, 0},
          is_new ? "schemata or enableMonitoring of intelRdt" : "intelRdt");
  }
  raise(highest, edits.net_devices.empty() ? Version() : Version{1, 1, 0}, "netDevices");
}

Feature highest_feature(const Spec& spec) {
  Feature highest{kVersions.front(), ""};
  raise_for(highest, spec.all);
  for (const auto& [name, edits] : spec.devices) {
    raise_for(highest, edits);
    raise(highest, is_letter(name.front()) ? Version() : Version{0, 5, 0}, "a device's name that begins with a digit");
  }
  const bool has_annotations = !spec.annotations.empty() || !spec.device_annotations.empty();
  raise(highest, has_annotations ? Version{0, 6, 0} : Version(), "annotations");
  const bool has_dot = spec.kind.find('.', spec.kind.find('/')) != std::string::npos;
  raise(highest, has_dot ? Version{0, 6, 0} : Version(), "a class with a dot in its name");
  return highest;
}

bool has_dropped_field(const ContainerEdits& edits) {
  return edits.intel_rdt && (edits.intel_rdt->enables_cmt || edits.intel_rdt->enables_mbm);
}

void add_faults_of_version(const Spec& spec, std::vector<std::string>& faults) {
  const Version version = parse_version(spec.version).value_or(Version());
  if (std::ranges::find(kVersions, version) == kVersions.end()) {
    faults.push_back("cdiVersion " + quote(spec.version) + " is none that is known: 0.3.0 to " + to_string(kNewest));
  }
  const Feature highest = highest_feature(spec);
  if (highest.since > version) {
    faults.push_back("cdiVersion is " + spec.version + ", and " + highest.what + " needs " + to_string(highest.since));
  }
  const bool has_dropped = has_dropped_field(spec.all) || std::ranges::any_of(spec.devices, [](const auto& device) {
                             return has_dropped_field(device.second);
                           });
  if (has_dropped && version >= Version{1, 1, 0}) {
    faults.emplace_back("enableCMT and enableMBM of intelRdt are gone since 1.1.0");
  }
}

}  // namespace

Result<Spec> parse_spec(std::string_view text, const std::string& file) {
  if (trim(text).starts_with('{')) {
    if (Result<Spec> spec = with_file(decode_spec(text, Scalars::typed), file); spec) {
      return spec;
    }
  }
  const Result<std::string> json = yaml_to_json(text);
  return with_file(json ? decode_spec(*json, Scalars::as_text) : std::unexpected(json.error()), file);
}

std::vector<std::string> faults_of(const Spec& spec) {
  std::vector<std::string> faults;
  add_faults_of_version(spec, faults);
  const std::size_t slash = spec.kind.find('/');
  const std::string_view vendor = std::string_view(spec.kind).substr(0, slash);
  const std::string_view name = std::string_view(spec.kind).substr(slash + 1);
  if (!is_name(vendor, "_-.") || !is_name(name, "_-.") || !is_letter(vendor.front()) || !is_letter(name.front())) {
    faults.push_back("kind " + quote(spec.kind) + " has characters that a vendor and a class may not have");
  }
  if (spec.devices.empty()) {
    faults.emplace_back("it has no devices");
  }
  for (const auto& [device, edits] : spec.devices) {
    if (!is_name(device, "_-.:")) {
      faults.push_back("device " + quote(device) + " has characters that a name may not have");
    }
    if (edits.is_empty()) {
      faults.push_back("device " + quote(device) + " has no edits");
    }
  }
  return faults;
}

RequiredVersion required_version(const Spec& spec) {
  const Feature highest = highest_feature(spec);
  return {to_string(highest.since), highest.what};
}

std::string recreate_command(const Spec& spec) {
  const std::size_t slash = spec.kind.find('/');
  const std::string vendor = spec.kind.substr(0, slash);
  if (vendor.ends_with("nvidia.com")) {
    return "holdfast cdi generate --file " + spec.file;
  }
  return vendor == "holdfast.dev"
             ? "holdfast cdi generate --class " + spec.kind.substr(slash + 1) + " --file " + spec.file
             : "recreate " + spec.file + " with the vendor's tool for " + spec.kind;
}

}  // namespace hf::cdi
