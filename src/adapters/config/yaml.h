// Yaml: what the parts of the config file share: refusing keys nobody knows, and reading lists.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "core/base/result.h"
#include "core/base/text.h"

namespace hf::config {

inline std::unexpected<Error> malformed(const std::string& why) {
  return fail(std::errc::invalid_argument, "config: " + why);
}

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

Result<std::vector<std::string>> paths_of(const YAML::Node& list, const std::string& where);
Result<std::string> word_of(const YAML::Node& value, const std::string& where);  // a scalar that is not empty

}  // namespace hf::config
