#include "adapters/config/yaml.h"

namespace hf::config {

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

Result<std::string> word_of(const YAML::Node& value, const std::string& where) {
  if (!value.IsScalar() || value.Scalar().empty()) {
    return malformed(where + " wants a word");
  }
  return value.Scalar();
}

}  // namespace hf::config
