#include "adapters/config/config.h"

#include <algorithm>
#include <array>

#include <yaml-cpp/yaml.h>

#include "core/base/text.h"
#include "kernel/file.h"

namespace hf::config {
namespace {

using device::DeviceClass;
using device::Part;

std::unexpected<Error> malformed(const std::string& why) { return fail(std::errc::invalid_argument, "config: " + why); }

template <std::size_t N>
Result<void> check_keys(const YAML::Node& map, const std::string& where, const std::array<std::string_view, N>& known) {
  if (!map.IsMap()) {
    return malformed(where + " wants keys with values");
  }
  for (const auto& entry : map) {
    const std::string key = entry.first.Scalar();
    if (std::ranges::find(known, key) == known.end()) {
      return malformed(where + ": unknown key " + quote(key));
    }
  }
  return {};
}

Result<std::vector<std::string>> paths_of(const YAML::Node& list, const std::string& where) {
  std::vector<std::string> paths;
  if (!list) {
    return paths;
  }
  if (!list.IsSequence()) {
    return malformed(where + " wants a list of paths");
  }
  for (const YAML::Node& entry : list) {
    if (!entry.IsScalar() || !entry.Scalar().starts_with('/')) {
      return malformed(where + ": " + quote(entry.IsScalar() ? entry.Scalar() : "?") + " is not an absolute path");
    }
    paths.push_back(entry.Scalar());
  }
  return paths;
}

Result<DeviceClass> parse_class(const YAML::Node& entry, std::size_t index) {
  const std::string where = "classes[" + std::to_string(index) + "]";
  TRY(check_keys(entry, where,
                 std::array<std::string_view, 7>{"name", "title", "units", "control", "helpers", "extra", "driver"}));
  DeviceClass parsed;
  const YAML::Node name = entry["name"];
  const std::string letters = name && name.IsScalar() ? name.Scalar() : std::string();
  if (letters.empty() || letters.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") != std::string::npos) {
    return malformed(where + ": name wants small letters, digits and dashes");
  }
  parsed.name = letters;
  parsed.title = entry["title"] && entry["title"].IsScalar() ? entry["title"].Scalar() : letters;
  std::optional<device::Numbering> numbering;
  if (entry["driver"]) {  // its name in /proc/devices; minors are the numbers at the end of the nodes' names
    if (!entry["driver"].IsScalar() || entry["driver"].Scalar().empty()) {
      return malformed(where + ": driver wants a name in /proc/devices");
    }
    numbering = device::Numbering{{entry["driver"].Scalar()}, std::nullopt, std::nullopt};
  }
  constexpr std::array<std::pair<const char*, Part>, 4> kLists = {
      {{"units", Part::unit}, {"control", Part::control}, {"helpers", Part::helper}, {"extra", Part::extra}}};
  for (const auto& [key, part] : kLists) {
    for (const std::string& glob : TRY(paths_of(entry[key], where + "." + key))) {
      const bool is_numbered = glob.find_first_of("*?[") != std::string::npos;
      parsed.nodes.push_back({glob, part, is_numbered ? numbering : std::nullopt});
    }
  }
  const bool has_units = std::ranges::any_of(parsed.nodes, [](const auto& node) { return node.part == Part::unit; });
  if (!has_units) {
    return malformed(where + " (" + letters + "): units wants at least one path or pattern");
  }
  return parsed;
}

Result<Config> parse_document(const YAML::Node& document) {
  Config config;
  if (!document || document.IsNull()) {
    config.classes = device::built_in_classes();
    return config;
  }
  TRY(check_keys(document, "the file", std::array<std::string_view, 2>{"classes", "state_roots"}));
  const YAML::Node classes = document["classes"];
  if (classes && !classes.IsSequence()) {
    return malformed("classes wants a list");
  }
  for (std::size_t i = 0; classes && i < classes.size(); ++i) {
    DeviceClass parsed = TRY(parse_class(classes[i], i));
    if (find_class(config.classes, parsed.name) != nullptr) {
      return malformed("two classes are called " + quote(parsed.name));
    }
    config.classes.push_back(std::move(parsed));
  }
  for (const DeviceClass& entry : device::built_in_classes()) {
    if (find_class(config.classes, entry.name) == nullptr) {
      config.classes.push_back(entry);
    }
  }
  config.state_roots = TRY(paths_of(document["state_roots"], "state_roots"));
  return config;
}

}  // namespace

Result<Config> parse_config(std::string_view text) {
  try {
    return parse_document(YAML::Load(std::string(text)));
  } catch (const YAML::Exception& error) {
    return malformed(error.what());
  }
}

Result<Config> read_config(const kernel::Host& host) {
  const Result<std::string> text = kernel::read_trusted_file(host.root.get(), kernel::below_root(kFile));
  if (!text && text.error().code == std::errc::no_such_file_or_directory) {
    return parse_config("");
  }
  Result<Config> config = text ? parse_config(*text) : Result<Config>(std::unexpected(text.error()));
  return config ? std::move(config) : fail(config.error().code, std::string(kFile) + ": " + config.error().message);
}

}  // namespace hf::config
