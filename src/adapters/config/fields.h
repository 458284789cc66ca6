// Fields: shared by the parts of the config file: refuses unknown keys, and reads lists and scalars.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/document/yaml.h"
#include "core/base/result.h"

namespace hf::config {

using document::Yaml;

std::unexpected<Error> malformed(const std::string& why);
Result<void> check_once(Yaml map, const std::string& where);  // of equal keys the parser heeds one only
// Known ones, each once.
Result<void> check_keys(Yaml map, const std::string& where, std::initializer_list<std::string_view> known);
Result<std::vector<std::string>> paths_of(Yaml list, const std::string& where);
Result<std::string> scalar_of(Yaml value, const std::string& where);  // one that is not empty

// Reads map[key] where it is there. `where`: the name of the map.
Result<void> read_switch(Yaml map, const std::string& where, const char* key, bool& into);

}  // namespace hf::config
