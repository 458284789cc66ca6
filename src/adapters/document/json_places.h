// JsonPlaces: the offsets of the values in a JSON text, so that some of them can be changed and every other byte stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace hf::document {

class JsonPlaces {
 public:
  enum class Kind : std::uint8_t { object, array, string, other };

  // One value. The children of an object or an array are linked through `next`.
  struct Place {
    Kind kind = Kind::other;
    std::size_t begin = 0;
    std::size_t end = 0;  // after its last character
    std::size_t key_begin = 0;
    std::size_t key_end = 0;  // of a member: its key with the quotes; both 0 otherwise
    std::size_t first = 0;    // index of the first child; 0: none
    std::size_t last = 0;
    std::size_t next = 0;  // index of the next sibling; 0: none
  };

  // The text must outlive the result, and its value begins at `begin` or after it. Fails where the text is clearly not
  // JSON; only the JSON library checks all of it.
  static Result<JsonPlaces> read(std::string_view text, std::size_t begin = 0);

  JsonPlaces(JsonPlaces&&) = default;  // a Place stays where it is
  JsonPlaces& operator=(JsonPlaces&&) = default;
  JsonPlaces(const JsonPlaces&) = delete;
  JsonPlaces& operator=(const JsonPlaces&) = delete;
  ~JsonPlaces() = default;

  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] const Place& root() const { return places_[1]; }
  [[nodiscard]] std::string_view text_of(const Place& place) const {
    return text_.substr(place.begin, place.end - place.begin);
  }
  [[nodiscard]] std::vector<const Place*> children(const Place& place) const;

  // The members with this key, which may be written with escapes.
  [[nodiscard]] std::vector<const Place*> members(const Place& object, std::string_view name) const;
  // The member with this key: null where there is none. Fails where there are two, because parsers differ in which one
  // they use.
  [[nodiscard]] Result<const Place*> member(const Place& object, std::string_view name) const;

 private:
  JsonPlaces(std::string_view text, std::vector<Place> places) : text_(text), places_(std::move(places)) {}

  std::string_view text_;
  std::vector<Place> places_;  // the first is unused, so that index 0 means none
};

// Changes of a text, by their offsets in the original text.
class Splices {
 public:
  void replace(std::size_t begin, std::size_t end, std::string text) {
    all_.push_back({begin, end, all_.size(), std::move(text)});
  }
  void insert(std::size_t at, std::string text) { replace(at, at, std::move(text)); }

  [[nodiscard]] bool is_empty() const { return all_.empty(); }
  [[nodiscard]] std::string apply(std::string_view text) const;

 private:
  struct Splice {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t order = 0;  // of two at the same offset the one added first comes first
    std::string text;
  };
  std::vector<Splice> all_;
};

}  // namespace hf::document
