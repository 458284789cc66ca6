// JsonText: the offsets of an object's members in a JSON text, so that one can be changed and every other byte stays.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::engine {

struct JsonMember {
  std::string key;
  std::size_t begin = 0;  // of the key's opening quote
  std::size_t value = 0;
  std::size_t end = 0;  // after the value
};

struct JsonObject {
  std::size_t begin = 0;  // of the opening brace
  std::size_t end = 0;    // of the closing one
  std::vector<JsonMember> members;

  [[nodiscard]] const JsonMember* find(std::string_view key) const;
};

// The layout of the text, taken from its members, so that new members look like the rest.
struct JsonLayout {
  std::string newline;        // "" where everything is on one line
  std::string indent = "  ";  // of one level
  std::string colon = ": ";
};

// The outermost object; the error names the line and the column where the text is no JSON, or no object.
Result<JsonObject> read_json_object(std::string_view text);
std::optional<JsonObject> read_json_object(std::string_view text, const JsonMember& member);  // absent: it is no object
JsonLayout layout_of(std::string_view text, const JsonObject& top);

// {"key": value} over several lines or on one.
std::string nest(const JsonLayout& layout, std::size_t depth, std::string_view key, std::string_view value);

// A new member is added before the others, so that their lines stay unchanged.
struct NewMember {
  std::string_view key;
  std::string_view value;  // as JSON
  std::size_t depth = 1;   // members of the outermost object have 1
};
std::string with_member(std::string_view text, const JsonObject& object, const JsonLayout& layout,
                        const NewMember& member);
std::string with_value(std::string_view text, const JsonMember& member, std::string_view value);
std::string without_member(std::string_view text, const JsonObject& object, std::string_view key);

}  // namespace hf::engine
