#include "adapters/config/fields.h"

#include <algorithm>
#include <set>

#include "core/base/suggest.h"
#include "core/base/text.h"

namespace hf::config {

std::unexpected<Error> malformed(const std::string& why) { return fail(std::errc::invalid_argument, "config: " + why); }

Result<void> check_once(Yaml map, const std::string& where) {
  std::set<std::string> keys;
  for (const auto& [name, value] : map.members()) {
    if (!keys.insert(name.scalar()).second) {
      return malformed(where + ": key " + quote(name.scalar()) + " stands there twice");
    }
  }
  return {};
}

Result<void> check_keys(Yaml map, const std::string& where, std::initializer_list<std::string_view> known) {
  if (!map.is_map()) {
    return malformed(where + " wants keys with values");
  }
  for (const auto& [name, value] : map.members()) {
    const std::string key = name.scalar();
    if (std::ranges::find(known, key) == known.end()) {
      const std::vector<std::string> names(known.begin(), known.end());
      return malformed(where + ": unknown key " + quote(key) + suggest(key, names));
    }
  }
  return check_once(map, where);
}

Result<std::vector<std::string>> paths_of(Yaml list, const std::string& where) {
  std::vector<std::string> paths;
  if (!list) {
    return paths;
  }
  if (!list.is_list()) {
    return malformed(where + " wants a list of paths");
  }
  for (const Yaml entry : list.elements()) {
    if (!entry.is_scalar() || !entry.scalar().starts_with('/')) {
      return malformed(where + ": " + quote(entry.is_scalar() ? entry.scalar() : "?") + " is not an absolute path");
    }
    paths.push_back(entry.scalar());
  }
  return paths;
}

Result<std::string> scalar_of(Yaml value, const std::string& where) {
  if (value.scalar().empty()) {
    return malformed(where + " wants a value");
  }
  return value.scalar();
}

Result<void> read_switch(Yaml map, const std::string& where, const char* key, bool& into) {
  const Yaml value = map[key];
  if (!value) {
    return {};
  }
  const std::string& text = value.scalar();
  if (text != "true" && text != "false") {
    return malformed(where + "." + key + " wants true or false");
  }
  into = text == "true";
  return {};
}

}  // namespace hf::config
