#include "adapters/oci/drop_hooks.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "adapters/document/json_places.h"

namespace hf::oci {
namespace {

using document::JsonPlaces;
using document::Splices;
using Json = document::OrderedJson;
using Place = JsonPlaces::Place;

void remove_elements(const JsonPlaces& places, const Place& list, const auto& is_unwanted, Splices& splices) {
  const std::vector<const Place*> all = places.children(list);
  bool has_kept = false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!is_unwanted(*all[i])) {
      has_kept = true;
    } else if (has_kept) {
      splices.replace(all[i - 1]->end, all[i]->end, "");
    } else {
      splices.replace(all[i]->begin, i + 1 < all.size() ? all[i + 1]->begin : all[i]->end, "");
    }
  }
}

}  // namespace

Result<std::string> drop_hooks(std::string_view text, const std::vector<std::string>& paths) {
  if (paths.empty()) {
    return std::string(text);
  }
  const JsonPlaces places = TRY(JsonPlaces::read(text));
  const Place* stages = TRY(places.member(places.root(), "hooks"));
  Splices splices;
  for (const Place* list : stages == nullptr ? std::vector<const Place*>() : places.children(*stages)) {
    remove_elements(
        places, *list,
        [&](const Place& hook) {
          const Json value = document::parse_json<Json>(places.text_of(hook)).value_or(Json());
          return value.is_object() && std::ranges::any_of(paths, [&value](const std::string& path) {
                   return value.value("path", Json()) == path;
                 });
        },
        splices);
  }
  return splices.apply(text);
}

}  // namespace hf::oci
