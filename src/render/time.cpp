#include "render/time.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <limits>

#include "core/base/text.h"

namespace hf::report {
namespace {

struct Unit {
  std::uint64_t nanoseconds;
  const char* name;
};
constexpr std::array<Unit, 6> kUnits = {{{1, "ns"},
                                         {1'000, "µs"},
                                         {1'000'000, "ms"},
                                         {1'000'000'000, "s"},
                                         {60'000'000'000, "min"},
                                         {3'600'000'000'000, "h"}}};

std::unexpected<Error> bad_moment(std::string_view text) {
  return fail(std::errc::invalid_argument, "time " + quote(text));
}

}  // namespace

// Values below ten have one digit after the point, larger ones none: more would not be read.
std::string render_duration(std::uint64_t nanoseconds) {
  const Unit* unit = kUnits.data();
  for (const Unit& larger : kUnits) {
    // 999.7 µs would be written as 1000 µs, and 119 s say more than 2 min.
    const std::uint64_t least =
        larger.nanoseconds >= 60'000'000'000 ? 2 * larger.nanoseconds : larger.nanoseconds - larger.nanoseconds / 2000;
    unit = nanoseconds >= least ? &larger : unit;
  }
  const double value = double(nanoseconds) / double(unit->nanoseconds);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", value < 9.95 ? 1 : 0, value);
  std::string number = text.data();
  if (number.ends_with(".0")) {
    number.resize(number.size() - 2);
  }
  return number + " " + unit->name;
}

std::string render_moment(std::int64_t milliseconds) {
  constexpr std::int64_t kLast = 253'402'300'799'999;  // the end of the year 9999, the last with four digits
  const std::chrono::sys_time<std::chrono::milliseconds> time(
      std::chrono::milliseconds(std::clamp<std::int64_t>(milliseconds, 0, kLast)));
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", int(date.year()),
                unsigned(date.month()), unsigned(date.day()), int(clock.hours().count()), int(clock.minutes().count()),
                int(clock.seconds().count()), int(clock.subseconds().count()));
  return text.data();
}

Result<std::int64_t> parse_moment(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00.000Z";
  const auto number = [text](std::size_t from, std::size_t length) {
    return parse_number<unsigned>(text.substr(from, length)).value_or(std::numeric_limits<unsigned>::max());
  };
  if (text.size() != kShape.size()) {
    return bad_moment(text);
  }
  using namespace std::chrono;
  const year_month_day date(year(int(number(0, 4))), month(number(5, 2)), day(number(8, 2)));
  if (!date.ok() || number(11, 2) > 23 || number(14, 2) > 59 || number(17, 2) > 59 || number(20, 3) > 999) {
    return bad_moment(text);
  }
  const milliseconds since = sys_days(date).time_since_epoch() + hours(number(11, 2)) + minutes(number(14, 2)) +
                             seconds(number(17, 2)) + milliseconds(number(20, 3));
  // Rendered again it must be the same: that checks the characters between the numbers and excludes years before 1970.
  return render_moment(since.count()) == text ? Result<std::int64_t>(since.count()) : bad_moment(text);
}

std::string render_time(std::int64_t seconds_since_1970) {
  const std::chrono::sys_seconds time{std::chrono::seconds(seconds_since_1970)};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02ld:%02ld:%02ldZ", int(date.year()), unsigned(date.month()),
                unsigned(date.day()), long(clock.hours().count()), long(clock.minutes().count()),
                long(clock.seconds().count()));
  return text.data();
}

std::string render_age(std::int64_t seconds) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  const std::int64_t age = std::max<std::int64_t>(seconds, 0);
  return age >= 2 * kDay      ? std::to_string(age / kDay) + "d"
         : age >= 2 * kHour   ? std::to_string(age / kHour) + "h"
         : age >= 2 * kMinute ? std::to_string(age / kMinute) + "m"
                              : std::to_string(age) + "s";
}

}  // namespace hf::report
