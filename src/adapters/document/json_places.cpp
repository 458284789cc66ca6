#include "adapters/document/json_places.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"

namespace hf::document {
namespace {

using Kind = JsonPlaces::Kind;
using Place = JsonPlaces::Place;

std::unexpected<Error> malformed(std::size_t at) {
  return fail(std::errc::invalid_argument, "not JSON at byte " + std::to_string(at));
}

bool is_space(char character) {
  return character == ' ' || character == '\n' || character == '\t' || character == '\r';
}

// A number, true, false or null, as far as a look at the characters tells.
bool is_literal(std::string_view text) {
  constexpr std::string_view kOfNumbers = "+-.0123456789Ee";
  const bool is_number = !text.empty() && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9')) &&
                         text.find_first_not_of(kOfNumbers) == std::string_view::npos;
  return is_number || text == "true" || text == "false" || text == "null";
}

Kind kind_by(char first) {
  switch (first) {
    case '{': return Kind::object;
    case '[': return Kind::array;
    case '"': return Kind::string;
    default: return Kind::other;
  }
}

// It does not recurse, so that a text with a million nested brackets does not overflow the stack.
class Scanner {
 public:
  Scanner(std::string_view text, std::size_t begin) : text_(text), at_(begin), places_(1) {}

  Result<std::vector<Place>> scan() {
    for (; at_ < text_.size(); ++at_) {
      const char character = text_[at_];
      if (is_space(character)) {
        continue;
      }
      const bool is_right = character == ','                       ? step(Next::comma_or_end, after_comma())
                            : character == ':'                     ? step(Next::colon, Next::value)
                            : character == ']' || character == '}' ? close(character)
                                                                   : read_token();
      if (!is_right) {
        return malformed(at_);
      }
    }
    if (!open_.empty() || places_.size() == 1) {
      return malformed(text_.size());
    }
    return std::move(places_);
  }

 private:
  enum class Next : std::uint8_t { value, value_or_end, key, key_or_end, colon, comma_or_end };

  bool step(Next from, Next to) {
    const bool is_right = next_ == from && !open_.empty();
    next_ = to;
    return is_right;
  }

  [[nodiscard]] bool is_in_object() const { return !open_.empty() && places_[open_.back()].kind == Kind::object; }
  [[nodiscard]] Next after_comma() const { return is_in_object() ? Next::key : Next::value; }

  bool close(char bracket) {
    const bool may_end = next_ == Next::comma_or_end || next_ == Next::value_or_end || next_ == Next::key_or_end;
    if (open_.empty() || !may_end || is_in_object() != (bracket == '}')) {
      return false;
    }
    places_[open_.back()].end = at_ + 1;
    open_.pop_back();
    next_ = Next::comma_or_end;
    return true;
  }

  // A key, a string or a literal, or the beginning of an object or a list.
  bool read_token() {
    const Kind kind = kind_by(text_[at_]);
    const std::size_t end = end_of(kind);
    const bool is_key = next_ == Next::key || next_ == Next::key_or_end;
    const bool is_behind_the_end = open_.empty() && places_.size() > 1;
    if (end == std::string_view::npos || (is_key && kind != Kind::string) || is_behind_the_end ||
        next_ == Next::colon || next_ == Next::comma_or_end ||
        (kind == Kind::other && !is_literal(text_.substr(at_, end - at_)))) {
      return false;
    }
    if (is_key) {
      key_begin_ = at_;
      key_end_ = end;
      next_ = Next::colon;
    } else {
      next_ = kind == Kind::object ? Next::key_or_end : kind == Kind::array ? Next::value_or_end : Next::comma_or_end;
      add_place(kind, end);
    }
    at_ = end - 1;
    return true;
  }

  void add_place(Kind kind, std::size_t end) {
    const bool is_opening = kind == Kind::object || kind == Kind::array;
    const std::size_t index = places_.size();
    places_.push_back({.kind = kind,
                       .begin = at_,
                       .end = is_opening ? 0 : end,
                       .key_begin = std::exchange(key_begin_, 0),
                       .key_end = std::exchange(key_end_, 0)});
    if (!open_.empty()) {
      Place& parent = places_[open_.back()];
      (parent.first == 0 ? parent.first : places_[parent.last].next) = index;
      parent.last = index;
    }
    if (is_opening) {
      open_.push_back(index);
    }
  }

  [[nodiscard]] std::size_t end_of(Kind kind) const {
    switch (kind) {
      case Kind::string: return end_of_string();
      case Kind::other: return std::min(text_.find_first_of(",:]} \t\n\r", at_), text_.size());
      default: return at_ + 1;
    }
  }

  [[nodiscard]] std::size_t end_of_string() const {
    for (std::size_t at = at_ + 1; at < text_.size(); ++at) {
      if (text_[at] == '\\') {
        ++at;
      } else if (text_[at] == '"') {
        return at + 1;
      }
    }
    return std::string_view::npos;
  }

  std::string_view text_;
  std::size_t at_;
  std::vector<Place> places_;      // the first is unused
  std::vector<std::size_t> open_;  // objects and lists
  std::size_t key_begin_ = 0;      // of the key whose value comes next
  std::size_t key_end_ = 0;        // 0: there is none
  Next next_ = Next::value;        // what may come
};

bool is_same_key(std::string_view key, std::string_view name) {
  if (key.find('\\') == std::string_view::npos) {
    return key.size() == name.size() + 2 && key.substr(1, name.size()) == name;
  }
  const Result<Json> read = parse_json(key);
  return read && read->is_string() && read->get_ref<const std::string&>() == name;
}

}  // namespace

Result<JsonPlaces> JsonPlaces::read(std::string_view text, std::size_t begin) {
  return JsonPlaces(text, TRY(Scanner(text, begin).scan()));
}

std::vector<const Place*> JsonPlaces::children(const Place& place) const {
  std::vector<const Place*> all;
  for (std::size_t at = place.first; at != 0; at = places_[at].next) {
    all.push_back(&places_[at]);
  }
  return all;
}

std::vector<const Place*> JsonPlaces::members(const Place& object, std::string_view name) const {
  std::vector<const Place*> found;
  for (std::size_t at = object.first; at != 0; at = places_[at].next) {
    const Place& place = places_[at];
    if (is_same_key(text_.substr(place.key_begin, place.key_end - place.key_begin), name)) {
      found.push_back(&place);
    }
  }
  return found;
}

Result<const Place*> JsonPlaces::member(const Place& object, std::string_view name) const {
  const std::vector<const Place*> found = members(object, name);
  if (found.size() > 1) {
    return fail(std::errc::invalid_argument, "it has \"" + std::string(name) + "\" twice");
  }
  return found.empty() ? nullptr : found.front();
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

}  // namespace hf::document
