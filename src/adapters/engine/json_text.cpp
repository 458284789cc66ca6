#include "adapters/engine/json_text.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "adapters/engine/registration.h"
#include "core/base/text.h"

namespace hf::engine {
namespace {

constexpr std::size_t kDeepest = 200;  // deeper than any real config, and comparing trees is recursive
constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // some editors write it at the start of a text

// The skip functions expect a text that is JSON.
std::size_t skip_blanks(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(kBlanks, at), text.size());
}

std::size_t skip_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    at += text[at] == '\\' ? 1 : 0;
  }
  return std::min(at + 1, text.size());
}

std::size_t skip_value(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  while (at < text.size()) {
    const char byte = text[at];
    if (byte == '"') {
      at = skip_string(text, at);
    } else if (byte == '{' || byte == '[') {
      ++depth;
      ++at;
    } else if (byte == '}' || byte == ']') {
      --depth;
      ++at;
    } else if (depth > 0) {
      ++at;
      continue;
    } else {
      return std::min(text.find_first_of(" \t\r\n,}]", at), text.size());
    }
    if (depth == 0) {
      return at;
    }
  }
  return at;
}

Result<void> check_json(std::string_view text) {
  if (json_depth(text) > kDeepest) {
    return fail(std::errc::invalid_argument, "it is nested too deep");
  }
  try {
    const nlohmann::json tree = nlohmann::json::parse(text);
    return {};
  } catch (const nlohmann::json::parse_error& error) {
    return fail(std::errc::invalid_argument,
                line_and_column(text, error.byte == 0 ? 0 : error.byte - 1) + ": this is no JSON");
  } catch (const nlohmann::json::exception&) {
    return fail(std::errc::invalid_argument, "it has a number that is out of range");
  }
}

JsonObject scan_object(std::string_view text, std::size_t begin) {
  JsonObject object{begin, begin, {}};
  std::size_t at = skip_blanks(text, begin + 1);
  while (at < text.size() && text[at] == '"') {
    JsonMember member;
    member.begin = at;
    const std::size_t key_end = skip_string(text, at);
    member.key = nlohmann::json::parse(text.substr(at, key_end - at)).get<std::string>();
    member.value = skip_blanks(text, skip_blanks(text, key_end) + 1);
    member.end = skip_value(text, member.value);
    at = skip_blanks(text, member.end);
    at = at < text.size() && text[at] == ',' ? skip_blanks(text, at + 1) : at;
    object.members.push_back(std::move(member));
  }
  object.end = at;
  return object;
}

std::string gap_before(std::string_view text, const JsonObject& object, std::size_t index) {
  const std::size_t begin = object.members[index].begin;
  const std::size_t last = text.substr(0, begin).find_last_not_of(kBlanks);
  return std::string(text.substr(last + 1, begin - last - 1));
}

std::string repeat(const std::string& text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    all += text;
  }
  return all;
}

// The whitespace between a new first member and the one that was first.
std::string gap_after_new_first(std::string_view text, const JsonObject& object) {
  if (object.members.size() > 1) {
    return gap_before(text, object, 1);
  }
  const std::string first = gap_before(text, object, 0);
  return first.find('\n') == std::string::npos ? " " : first;
}

}  // namespace

const JsonMember* JsonObject::find(std::string_view key) const {
  const auto found = std::ranges::find(members, key, &JsonMember::key);
  return found == members.end() ? nullptr : &*found;
}

Result<JsonObject> read_json_object(std::string_view text) {
  TRY(check_json(text));
  const std::size_t begin = skip_blanks(text, text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  if (begin == text.size() || text[begin] != '{') {
    return fail(std::errc::invalid_argument, line_and_column(text, begin) + ": want an object in braces");
  }
  return scan_object(text, begin);
}

std::optional<JsonObject> read_json_object(std::string_view text, const JsonMember& member) {
  return text[member.value] == '{' ? std::optional(scan_object(text, member.value)) : std::nullopt;
}

JsonLayout layout_of(std::string_view text, const JsonObject& top) {
  if (top.members.empty()) {
    return {"\n", "    ", ": "};
  }
  JsonLayout layout;
  std::string gap = gap_before(text, top, 0);
  if (gap.find('\n') == std::string::npos && top.members.size() > 1) {
    gap = gap_before(text, top, 1);
  }
  const std::size_t line = gap.rfind('\n');
  layout.newline = line == std::string::npos ? "" : gap.find("\r\n") == std::string::npos ? "\n" : "\r\n";
  layout.indent = line == std::string::npos ? "" : gap.substr(line + 1);
  const JsonMember& first = top.members.front();
  const std::size_t key_end = skip_string(text, first.begin);
  const std::string colon(text.substr(key_end, first.value - key_end));
  layout.colon = colon.find('\n') == std::string::npos ? colon : ": ";
  return layout;
}

std::string nest(const JsonLayout& layout, std::size_t depth, std::string_view key, std::string_view value) {
  const std::string open = layout.newline.empty() ? "" : layout.newline + repeat(layout.indent, depth + 1);
  const std::string close = layout.newline.empty() ? "" : layout.newline + repeat(layout.indent, depth);
  return "{" + open + '"' + std::string(key) + '"' + layout.colon + std::string(value) + close + "}";
}

std::string with_member(std::string_view text, const JsonObject& object, const JsonLayout& layout,
                        const NewMember& member) {
  if (object.members.empty()) {
    const std::string value = nest(layout, member.depth - 1, member.key, member.value);
    return std::string(text.substr(0, object.begin)) + value + std::string(text.substr(object.end + 1));
  }
  const std::size_t at = object.members.front().begin;
  return std::string(text.substr(0, at)) + '"' + std::string(member.key) + '"' + layout.colon +
         std::string(member.value) + "," + gap_after_new_first(text, object) + std::string(text.substr(at));
}

std::string with_value(std::string_view text, const JsonMember& member, std::string_view value) {
  return std::string(text.substr(0, member.value)) + std::string(value) + std::string(text.substr(member.end));
}

std::string without_member(std::string_view text, const JsonObject& object, std::string_view key) {
  const auto member = std::ranges::find(object.members, key, &JsonMember::key);
  if (member == object.members.end()) {
    return std::string(text);
  }
  const bool is_first = member == object.members.begin();
  const bool is_last = member + 1 == object.members.end();
  const std::size_t begin = !is_last ? member->begin : is_first ? object.begin + 1 : (member - 1)->end;
  const std::size_t end = !is_last ? (member + 1)->begin : is_first ? object.end : member->end;
  return std::string(text.substr(0, begin)) + std::string(text.substr(end));
}

}  // namespace hf::engine
