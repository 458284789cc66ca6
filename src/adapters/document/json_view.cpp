#include "adapters/document/json_view.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace hf::document {
namespace {

// With the quotes. Absent where it is no string of JSON.
std::optional<std::string> decode(std::string_view literal) {
  const auto is_plain = [](unsigned char character) {
    constexpr unsigned char kFirstOfMany = 0x80;
    return character >= ' ' && character < kFirstOfMany && character != '\\';
  };
  if (literal.size() >= 2 && std::ranges::all_of(literal, is_plain)) {
    return std::string(literal.substr(1, literal.size() - 2));
  }
  const Result<Json> read = parse_json(literal);
  return read && read->is_string() ? std::optional(read->get<std::string>()) : std::nullopt;
}

}  // namespace

JsonView::JsonView(const JsonPlaces& places, const JsonPlaces::Place& place) : places_(&places), place_(&place) {
  if (place.kind == JsonPlaces::Kind::other && text() == "null") {
    place_ = nullptr;
  }
}

JsonView JsonView::at(std::string_view key) const {
  if (!is_object()) {
    return {};
  }
  const std::vector<const JsonPlaces::Place*> found = places_->members(*place_, key);
  return found.empty() ? JsonView() : JsonView(*places_, *found.back());
}

std::vector<JsonView> JsonView::elements() const {
  std::vector<JsonView> all;
  if (is_array()) {
    for (const JsonPlaces::Place* child : places_->children(*place_)) {
      all.push_back(JsonView(*places_, *child));
    }
  }
  return all;
}

std::vector<std::pair<std::string, JsonView>> JsonView::members() const {
  std::vector<std::pair<std::string, JsonView>> all;
  if (is_object()) {
    for (const JsonPlaces::Place* child : places_->children(*place_)) {
      const std::string_view key = places_->text().substr(child->key_begin, child->key_end - child->key_begin);
      all.emplace_back(decode(key).value_or(""), JsonView(*places_, *child));
    }
  }
  return all;
}

std::optional<std::string> JsonView::string() const {
  return is(JsonPlaces::Kind::string) ? decode(text()) : std::nullopt;
}

std::vector<std::string> JsonView::strings() const {
  std::vector<std::string> all;
  for (const JsonView& element : elements()) {
    if (std::optional<std::string> text = element.string()) {
      all.push_back(*std::move(text));
    }
  }
  return all;
}

std::string_view JsonView::text() const { return place_ == nullptr ? std::string_view() : places_->text_of(*place_); }

Json JsonView::tree(const Limits& limits) const {
  return is_nothing() ? Json() : parse_json(text(), limits).value_or(Json());
}

}  // namespace hf::document
