#include "adapters/config/yaml.h"

#include <algorithm>
#include <set>

#include <yaml-cpp/yaml.h>

#include "core/base/suggest.h"
#include "core/base/text.h"

namespace hf::config {

std::unexpected<Error> malformed(const std::string& why) { return fail(std::errc::invalid_argument, "config: " + why); }

Result<void> check_once(const YAML::Node& map, const std::string& where) {
  std::set<std::string> keys;
  for (const auto& entry : map) {
    if (!keys.insert(entry.first.Scalar()).second) {
      return malformed(where + ": key " + quote(entry.first.Scalar()) + " stands there twice");
    }
  }
  return {};
}

Result<void> check_keys(const YAML::Node& map, const std::string& where,
                        std::initializer_list<std::string_view> known) {
  if (!map.IsMap()) {
    return malformed(where + " wants keys with values");
  }
  for (const auto& entry : map) {
    const std::string key = entry.first.Scalar();
    if (std::ranges::find(known, key) == known.end()) {
      const std::vector<std::string> names(known.begin(), known.end());
      return malformed(where + ": unknown key " + quote(key) + suggest(key, names));
    }
  }
  return check_once(map, where);
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

Result<std::string> scalar_of(const YAML::Node& value, const std::string& where) {
  if (!value || !value.IsScalar() || value.Scalar().empty()) {
    return malformed(where + " wants a value");
  }
  return value.Scalar();
}

Result<void> read_switch(const YAML::Node& map, const std::string& where, const char* key, bool& into) {
  const YAML::Node value = map[key];
  if (!value) {
    return {};
  }
  const std::string text = value.IsScalar() ? value.Scalar() : std::string();
  if (text != "true" && text != "false") {
    return malformed(where + "." + key + " wants true or false");
  }
  into = text == "true";
  return {};
}

}  // namespace hf::config
