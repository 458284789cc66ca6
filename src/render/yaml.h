// Yaml: a JSON document as YAML.
#pragma once

#include <string>

namespace hf::report {

// The same tree, every text in quotes.
std::string json_to_yaml(const std::string& json);

}  // namespace hf::report
