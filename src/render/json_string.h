// JsonString: a text as a JSON string.
#pragma once

#include <string>
#include <string_view>

namespace hf::report {

std::string json_string(std::string_view text);  // with its quotes

}  // namespace hf::report
