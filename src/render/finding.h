// Finding: findings as text, and the pages that explain them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/report/finding.h"

namespace hf::report {

// For people: each with its evidence and its cure.
std::string render_text(const std::vector<Finding>& findings);
// The page of a code in docs/FINDINGS.md, "" where there is none.
std::string page_of(std::string_view code);
std::vector<std::string> codes_with_pages();
std::string render_page_json(std::string_view code, std::string_view page);
// The same for a browser; "" where there is none. The list links to all of them.
std::string html_page_of(std::string_view code);
std::string html_list_of_pages();

}  // namespace hf::report
