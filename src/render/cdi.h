// Cdi: reports about CDI specs as text and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/report/cdi_report.h"
#include "render/text_table.h"

namespace hf::report {

std::string render_text(const CdiList& list, std::size_t columns = kAnyWidth);
std::string render_json(const CdiList& list);
std::string render_text(const CdiCheck& check);
std::string render_json(const CdiCheck& check);
std::string render_json(const CdiResolved& resolved);

}  // namespace hf::report
