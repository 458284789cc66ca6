// JsonPlaces: the offsets of the values in a JSON text, so that some of them can be changed and every other byte stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::oci {

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

  // The text must outlive the result. Fails where the text is clearly not JSON; only the JSON library checks all of it.
  static Result<JsonPlaces> read(std::string_view text);

  [[nodiscard]] const Place& root() const { return places_[1]; }
  [[nodiscard]] std::string_view text_of(const Place& place) const {
    return text_.substr(place.begin, place.end - place.begin);
  }
  [[nodiscard]] std::vector<const Place*> children(const Place& place) const;

  // A member by its key: null where there is none. Fails where there are two, because parsers differ in which one they
  // use.
  [[nodiscard]] Result<const Place*> member(const Place& object, std::string_view name) const;

 private:
  explicit JsonPlaces(std::string_view text) : text_(text), places_(1) {}

  Result<void> scan();
  [[nodiscard]] std::size_t end_of_string(std::size_t at) const;  // npos where it is not closed
  [[nodiscard]] std::size_t end_of_literal(std::size_t at) const;

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

}  // namespace hf::oci
