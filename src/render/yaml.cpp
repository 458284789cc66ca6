#include "render/yaml.h"

#include <nlohmann/json.hpp>

namespace hf::report {
namespace {

using Json = nlohmann::ordered_json;

bool is_leaf(const Json& json) { return !json.is_structured() || json.empty(); }

// A value is written in YAML as in JSON.
std::string leaf(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

void write(const Json& json, const std::string& indent, std::string& text) {
  if (is_leaf(json)) {
    text += indent + leaf(json) + "\n";
    return;
  }
  for (auto entry = json.begin(); entry != json.end(); ++entry) {
    const std::string head =
        json.is_object() ? Json(entry.key()).dump(-1, ' ', false, Json::error_handler_t::replace) + ":" : "-";
    if (is_leaf(*entry)) {
      text += indent + head + " " + leaf(*entry) + "\n";
    } else {
      text += indent + head + "\n";
      write(*entry, indent + "  ", text);
    }
  }
}

}  // namespace

std::string json_to_yaml(const std::string& json) {
  std::string text;
  write(Json::parse(json), "", text);
  return text;
}

}  // namespace hf::report
