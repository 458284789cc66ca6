// JsonString: a text as a JSON string, and the JSON documents that programs print.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace hf::report {

std::string json_string(std::string_view text);                       // with its quotes
std::string render_document(const nlohmann::ordered_json& document);  // indented, with a line break at its end

}  // namespace hf::report
