// JsonPlaces: where the values of a JSON text stand, so that the text can be changed in places and kept everywhere
// else.
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

  // One value. Children of an object and of an array follow each other through `next`.
  struct Place {
    Kind kind = Kind::other;
    std::size_t begin = 0;
    std::size_t end = 0;  // behind its last letter
    std::size_t key_begin = 0;
    std::size_t key_end = 0;  // of a member: its name with the quotes; both 0 otherwise
    std::size_t first = 0;    // child; 0: none
    std::size_t last = 0;
    std::size_t next = 0;  // 0: none
  };

  // The text must stay as long as this does. Fails where it is not JSON; the library has the last word on that.
  static Result<JsonPlaces> read(std::string_view text);

  [[nodiscard]] const Place& root() const { return places_[1]; }
  [[nodiscard]] std::string_view text_of(const Place& place) const {
    return text_.substr(place.begin, place.end - place.begin);
  }
  [[nodiscard]] std::vector<const Place*> children(const Place& place) const;

  // A member by its name: null where there is none. Fails where there are two: which one counts depends on who reads
  // it.
  [[nodiscard]] Result<const Place*> member(const Place& object, std::string_view name) const;

 private:
  explicit JsonPlaces(std::string_view text) : text_(text), places_(1) {}

  Result<void> scan();
  [[nodiscard]] std::size_t end_of_string(std::size_t at) const;  // npos where it has none
  [[nodiscard]] std::size_t end_of_word(std::size_t at) const;

  std::string_view text_;
  std::vector<Place> places_;  // the first is none's, so that 0 means none
};

// Changes of a text, by their places in the text as it was.
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
    std::size_t order = 0;  // of two at one place the first comes first
    std::string text;
  };
  std::vector<Splice> all_;
};

}  // namespace hf::oci
