#include "render/json_string.h"

#include <nlohmann/json.hpp>

#include "core/base/text.h"

namespace hf::report {

std::string json_string(std::string_view text) {
  return nlohmann::json(as_utf8(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string render_document(const nlohmann::ordered_json& document) {
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace hf::report
