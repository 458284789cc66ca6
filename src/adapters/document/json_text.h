// JsonText: adds, changes and removes members of the objects in a JSON text. Every other byte stays, and new members
// look like the rest.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "adapters/document/json_places.h"
#include "core/base/result.h"

namespace hf::document {

// The layout of the text, taken from its outermost members.
struct JsonLayout {
  std::string newline;        // "" where everything is on one line
  std::string indent = "  ";  // of one level
  std::string colon = ": ";
};

// The places of a text that is JSON and may begin with a byte order mark. Fails where its outermost value is no object.
Result<JsonPlaces> read_object_places(std::string_view text);
JsonLayout layout_of(const JsonPlaces& places);

// {"key": value} over several lines or on one.
std::string nest(const JsonLayout& layout, std::size_t depth, std::string_view key, std::string_view value);

// A new member is added before the others, so that their lines stay unchanged.
struct NewMember {
  std::string_view key;
  std::string_view value;  // as JSON
  std::size_t depth = 1;   // members of the outermost object have 1
};
std::string with_member(const JsonPlaces& places, const JsonPlaces::Place& object, const NewMember& member);
std::string with_value(const JsonPlaces& places, const JsonPlaces::Place& place, std::string_view value);
std::string without_member(const JsonPlaces& places, const JsonPlaces::Place& object, const JsonPlaces::Place& member);

}  // namespace hf::document
