#include "adapters/document/json_text.h"

#include <algorithm>
#include <vector>

#include "adapters/document/text.h"

namespace hf::document {
namespace {

using Place = JsonPlaces::Place;

constexpr std::string_view kBlanks = " \t\r\n";

std::string replaced(std::string_view text, std::size_t begin, std::size_t end, std::string_view by) {
  return std::string(text.substr(0, begin)).append(by).append(text.substr(end));
}

std::string gap_before(std::string_view text, const Place& member) {
  const std::size_t last = text.substr(0, member.key_begin).find_last_not_of(kBlanks);
  return std::string(text.substr(last + 1, member.key_begin - last - 1));
}

std::string repeat(const std::string& text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    all += text;
  }
  return all;
}

// The whitespace between a new first member and the one that was first.
std::string gap_after_new_first(std::string_view text, const std::vector<const Place*>& members) {
  if (members.size() > 1) {
    return gap_before(text, *members[1]);
  }
  const std::string first = gap_before(text, *members[0]);
  return first.find('\n') == std::string::npos ? " " : first;
}

}  // namespace

Result<JsonPlaces> read_object_places(std::string_view text) {
  const std::size_t start = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks, start), text.size());
  if (begin == text.size() || text[begin] != '{') {
    return fail(std::errc::invalid_argument, line_and_column(text, begin) + ": want an object in braces");
  }
  return JsonPlaces::read(text, begin);
}

JsonLayout layout_of(const JsonPlaces& places) {
  const std::vector<const Place*> members = places.children(places.root());
  if (members.empty()) {
    return {"\n", "    ", ": "};
  }
  JsonLayout layout;
  std::string gap = gap_before(places.text(), *members[0]);
  if (gap.find('\n') == std::string::npos && members.size() > 1) {
    gap = gap_before(places.text(), *members[1]);
  }
  const std::size_t line = gap.rfind('\n');
  layout.newline = line == std::string::npos ? "" : gap.find("\r\n") == std::string::npos ? "\n" : "\r\n";
  layout.indent = line == std::string::npos ? "" : gap.substr(line + 1);
  const Place& first = *members.front();
  const std::string colon(places.text().substr(first.key_end, first.begin - first.key_end));
  layout.colon = colon.find('\n') == std::string::npos ? colon : ": ";
  return layout;
}

std::string nest(const JsonLayout& layout, std::size_t depth, std::string_view key, std::string_view value) {
  const std::string open = layout.newline.empty() ? "" : layout.newline + repeat(layout.indent, depth + 1);
  const std::string close = layout.newline.empty() ? "" : layout.newline + repeat(layout.indent, depth);
  return "{" + open + in_quotes(key) + layout.colon + std::string(value) + close + "}";
}

std::string with_member(const JsonPlaces& places, const Place& object, const NewMember& member) {
  const JsonLayout layout = layout_of(places);
  const std::vector<const Place*> members = places.children(object);
  if (members.empty()) {
    return with_value(places, object, nest(layout, member.depth - 1, member.key, member.value));
  }
  const std::size_t at = members.front()->key_begin;
  const std::string added = in_quotes(member.key) + layout.colon + std::string(member.value) + ",";
  return replaced(places.text(), at, at, added + gap_after_new_first(places.text(), members));
}

std::string with_value(const JsonPlaces& places, const Place& place, std::string_view value) {
  return replaced(places.text(), place.begin, place.end, value);
}

std::string without_member(const JsonPlaces& places, const Place& object, const Place& member) {
  const std::vector<const Place*> members = places.children(object);
  const auto found = std::ranges::find(members, &member);
  const bool is_first = found == members.begin();
  const bool is_last = found + 1 == members.end();
  const std::size_t begin = !is_last ? member.key_begin : is_first ? object.begin + 1 : found[-1]->end;
  const std::size_t end = !is_last ? found[1]->key_begin : is_first ? object.end - 1 : member.end;
  return replaced(places.text(), begin, end, "");
}

}  // namespace hf::document
