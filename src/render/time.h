// Time: points in time and durations as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace hf::report {

std::string render_duration(std::uint64_t nanoseconds);    // "38 µs", "1.2 ms", "4 s"
std::string render_moment(std::int64_t milliseconds);      // since 1970: "2026-11-15T05:14:08.123Z"
Result<std::int64_t> parse_moment(std::string_view text);  // the reverse of render_moment
std::string render_age(std::int64_t seconds);              // "3d", "5h", "12m", "40s"
std::string render_time(std::int64_t seconds_since_1970);  // "2026-11-15T05:00:00Z"

}  // namespace hf::report
