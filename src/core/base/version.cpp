#include "core/base/version.h"

#include <array>
#include <cstddef>

#include "core/base/text.h"

namespace hf {
namespace {

// Consumes the digits at the front.
std::optional<std::uint32_t> take_number(std::string_view& text) {
  const std::size_t end = text.find_first_not_of("0123456789");
  const std::optional<std::uint32_t> number = parse_number<std::uint32_t>(text.substr(0, end));
  text.remove_prefix(end == std::string_view::npos ? text.size() : end);
  return number;
}

}  // namespace

std::optional<Version> parse_version(std::string_view text) {
  Version version;
  text = trim(text);
  if (text.starts_with('v')) {
    text.remove_prefix(1);
  }
  const std::array<std::uint32_t*, 3> parts = {&version.major, &version.minor, &version.patch};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && !text.starts_with('.')) {
      break;
    }
    text.remove_prefix(i > 0 ? 1 : 0);
    const std::optional<std::uint32_t> number = take_number(text);
    if (!number) {
      return std::nullopt;
    }
    *parts[i] = *number;
  }
  const std::size_t candidate = text.find("rc");
  const bool directly = candidate == 0 || (candidate == 1 && (text[0] == '-' || text[0] == '~'));
  if (directly) {
    std::string_view rest = text.substr(candidate + 2);
    rest.remove_prefix(rest.starts_with('.') ? 1 : 0);
    version.candidate = take_number(rest).value_or(0);
  }
  return version;
}

}  // namespace hf
