#include "adapters/oci/json_places.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace hf::oci {
namespace {

std::unexpected<Error> malformed(std::size_t at) {
  return fail(std::errc::invalid_argument, "not JSON at byte " + std::to_string(at));
}

bool is_blank(char character) {
  return character == ' ' || character == '\t' || character == '\n' || character == '\r';
}

}  // namespace

Result<JsonPlaces> JsonPlaces::read(std::string_view text) {
  JsonPlaces places(text);
  TRY(places.scan());
  return places;
}

std::size_t JsonPlaces::end_of_string(std::size_t at) const {
  for (++at; at < text_.size(); ++at) {
    if (text_[at] == '\\') {
      ++at;
    } else if (text_[at] == '"') {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

std::size_t JsonPlaces::end_of_literal(std::size_t at) const {
  const std::size_t end = text_.find_first_of(",]} \t\n\r", at);
  return end == std::string_view::npos ? text_.size() : end;
}

// This does not recurse, so that a text with a million nested brackets does not overflow the stack.
Result<void> JsonPlaces::scan() {
  std::vector<std::size_t> open;  // objects and arrays
  Place key;                      // the key that was read last
  bool has_key = false;
  for (std::size_t at = 0; at < text_.size();) {
    const char character = text_[at];
    if (is_blank(character) || character == ',' || character == ':') {
      ++at;
      continue;
    }
    if (character == ']' || character == '}') {
      if (open.empty()) {
        return malformed(at);
      }
      places_[open.back()].end = ++at;
      open.pop_back();
      continue;
    }
    const bool is_string = character == '"';
    const bool is_opening = character == '{' || character == '[';
    const std::size_t end = is_opening ? at + 1 : is_string ? end_of_string(at) : end_of_literal(at);
    if (end == std::string_view::npos) {
      return malformed(at);
    }
    const bool in_object = !open.empty() && places_[open.back()].kind == Kind::object;
    if (in_object && !has_key) {
      if (!is_string) {
        return malformed(at);
      }
      key.key_begin = at;
      key.key_end = end;
      has_key = true;
      at = end;
      continue;
    }
    if (open.empty() && places_.size() > 1) {
      return malformed(at);  // something after the end
    }
    Place place;
    place.begin = at;
    place.key_begin = has_key ? key.key_begin : 0;
    place.key_end = has_key ? key.key_end : 0;
    has_key = false;
    const std::size_t index = places_.size();
    if (!open.empty()) {
      Place& parent = places_[open.back()];
      (parent.first == 0 ? parent.first : places_[parent.last].next) = index;
      parent.last = index;
    }
    place.kind = character == '{'   ? Kind::object
                 : character == '[' ? Kind::array
                 : is_string        ? Kind::string
                                    : Kind::other;
    place.end = is_opening ? 0 : end;
    at = end;
    places_.push_back(place);
    if (is_opening) {
      open.push_back(index);
    }
  }
  return open.empty() && places_.size() > 1 ? Result<void>() : malformed(text_.size());
}

std::vector<const JsonPlaces::Place*> JsonPlaces::children(const Place& place) const {
  std::vector<const Place*> all;
  for (std::size_t at = place.first; at != 0; at = places_[at].next) {
    all.push_back(&places_[at]);
  }
  return all;
}

Result<const JsonPlaces::Place*> JsonPlaces::member(const Place& object, std::string_view name) const {
  const Place* found = nullptr;
  for (std::size_t at = object.first; at != 0; at = places_[at].next) {
    const Place& place = places_[at];
    const std::string_view key = text_.substr(place.key_begin, place.key_end - place.key_begin);
    bool is_same = key.size() == name.size() + 2 && key.substr(1, name.size()) == name;
    if (!is_same && key.find('\\') != std::string_view::npos) {
      const nlohmann::json read = nlohmann::json::parse(key, nullptr, /*allow_exceptions=*/false);
      is_same = read.is_string() && read.get<std::string>() == name;
    }
    if (is_same && found != nullptr) {
      return fail(std::errc::invalid_argument, "it has \"" + std::string(name) + "\" twice");
    }
    found = is_same ? &place : found;
  }
  return found;
}

std::string Splices::apply(std::string_view text) const {
  std::vector<Splice> sorted = all_;
  std::ranges::sort(sorted, {}, [](const Splice& splice) { return std::pair(splice.begin, splice.order); });
  std::string changed;
  std::size_t at = 0;
  for (const Splice& splice : sorted) {
    changed += text.substr(at, splice.begin - at);
    changed += splice.text;
    at = std::max(at, splice.end);
  }
  return changed += text.substr(at);
}

}  // namespace hf::oci
