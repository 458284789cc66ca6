// Markup: what HTML and SVG have in common.
#pragma once

#include <string>
#include <string_view>

namespace hf::report {

std::string escaped_markup(std::string_view text);  // for the text of an element, or an attribute in double quotes

}  // namespace hf::report
