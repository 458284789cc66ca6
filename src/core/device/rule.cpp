#include "core/device/rule.h"

#include <cstddef>

#include "core/base/text.h"

namespace hf::device {
namespace {

bool contains_span(const std::optional<Span>& whole, const std::optional<Span>& part) {
  return !whole || (part && whole->contains(*part));
}

bool overlap_spans(const std::optional<Span>& a, const std::optional<Span>& b) { return !a || !b || overlap(*a, *b); }

// "*" is an absent span.
Result<std::optional<Span>> parse_span(std::string_view text, std::uint32_t limit) {
  if (text == "*") {
    return std::nullopt;
  }
  const std::size_t dash = text.find('-');
  const bool is_open = dash != std::string_view::npos && text.substr(dash + 1) == "*";
  const std::optional<std::uint32_t> first = parse_number<std::uint32_t>(text.substr(0, dash));
  const std::optional<std::uint32_t> last = dash == std::string_view::npos ? first
                                            : is_open                      ? std::optional(kLastNumber)
                                                      : parse_number<std::uint32_t>(text.substr(dash + 1));
  if (!first || !last || *first > *last || *first > limit) {
    return fail(std::errc::invalid_argument, "number");
  }
  return Span{*first, *last};
}

std::string to_string(const std::optional<Span>& span) {
  if (!span) {
    return "*";
  }
  std::string first = std::to_string(span->first);
  if (span->is_point()) {
    return first;
  }
  return first + "-" + (span->last == kLastNumber ? "*" : std::to_string(span->last));
}

Result<std::optional<Kind>> parse_kind(std::string_view text) {
  if (text == "a") {
    return std::nullopt;
  }
  if (text == "b" || text == "c") {
    return text == "b" ? Kind::block : Kind::character;
  }
  return fail(std::errc::invalid_argument, "kind");
}

}  // namespace

bool Selector::contains(const Selector& other) const {
  return (!kind || kind == other.kind) && contains_span(major, other.major) && contains_span(minor, other.minor);
}

bool Selector::overlaps(const Selector& other) const {
  return (!kind || !other.kind || kind == other.kind) && overlap_spans(major, other.major) &&
         overlap_spans(minor, other.minor);
}

AccessSet Rule::allowed() const {
  return match == Match::within ? AccessSet::within(access) : AccessSet::exactly(access);
}

Result<Rule> parse_rule(std::string_view text) {
  const auto malformed = [text](const std::string& why) {
    return fail(std::errc::invalid_argument, "parse rule " + quote(text) + ": " + why);
  };
  const std::vector<std::string_view> fields = split_fields(text);
  if (fields.size() == 1 && fields[0] == "a") {
    return Rule{{}, Access::all, Match::within};
  }
  if (fields.size() < 3 || fields.size() > 4 || (fields.size() == 4 && fields[3] != "exactly")) {
    return malformed("want TYPE MAJOR:MINOR ACCESS such as 'c 195:* rw'");
  }
  const Result<std::optional<Kind>> kind = parse_kind(fields[0]);
  if (!kind) {
    return malformed("the type is a, b or c");
  }
  const std::size_t colon = fields[1].find(':');
  if (colon == std::string_view::npos) {
    return malformed("want MAJOR:MINOR, each a number, a range or *");
  }
  const Result<std::optional<Span>> major = parse_span(fields[1].substr(0, colon), kLastMajor);
  if (!major) {
    return malformed("the major is a number up to " + std::to_string(kLastMajor) + ", a range or *");
  }
  const Result<std::optional<Span>> minor = parse_span(fields[1].substr(colon + 1), kLastMinor);
  if (!minor) {
    return malformed("the minor is a number up to " + std::to_string(kLastMinor) + ", a range or *");
  }
  const Result<Access> access = parse_access(fields[2]);
  if (!access || *access == Access::none) {
    return malformed("the access is a combination of r, w and m, none twice");
  }
  return Rule{{*kind, *major, *minor}, *access, fields.size() == 4 ? Match::exactly : Match::within};
}

std::string to_string(const Selector& selector) {
  return std::string(1, selector.kind ? kind_character(*selector.kind) : 'a') + " " + to_string(selector.major) + ":" +
         to_string(selector.minor);
}

std::string to_string(const Rule& rule) {
  return to_string(rule.selector) + " " + to_string(rule.access) + (rule.match == Match::exactly ? " exactly" : "");
}

}  // namespace hf::device
