// JsonView: reads a few values of a long JSON text. The others are passed over: building a tree of all of them takes
// ten times as long.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "adapters/document/json.h"
#include "adapters/document/json_places.h"

namespace hf::document {

// Lenient access: what is missing or null is a view of nothing. Only the values that are asked for are checked to be
// JSON. The places must outlive it.
class JsonView {
 public:
  JsonView() = default;
  explicit JsonView(const JsonPlaces& places) : JsonView(places, places.root()) {}

  [[nodiscard]] bool is_nothing() const { return place_ == nullptr; }
  [[nodiscard]] bool is_object() const { return is(JsonPlaces::Kind::object); }
  [[nodiscard]] bool is_array() const { return is(JsonPlaces::Kind::array); }

  [[nodiscard]] JsonView at(std::string_view key) const;  // of two members with the same key the last one
  [[nodiscard]] std::vector<JsonView> elements() const;   // of an array; empty for anything else
  [[nodiscard]] std::vector<std::pair<std::string, JsonView>> members() const;  // of an object, in their order

  [[nodiscard]] std::optional<std::string> string() const;   // absent where it is of another type
  [[nodiscard]] std::vector<std::string> strings() const;    // of an array, without the elements of other types
  [[nodiscard]] std::string_view text() const;               // as it is written; "" of nothing
  [[nodiscard]] Json tree(const Limits& limits = {}) const;  // null where it is no JSON, or exceeds a limit

 private:
  JsonView(const JsonPlaces& places, const JsonPlaces::Place& place);
  [[nodiscard]] bool is(JsonPlaces::Kind kind) const { return place_ != nullptr && place_->kind == kind; }

  const JsonPlaces* places_ = nullptr;
  const JsonPlaces::Place* place_ = nullptr;
};

}  // namespace hf::document
