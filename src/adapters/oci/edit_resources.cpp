#include "adapters/oci/edit_resources.h"

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "adapters/document/json_places.h"
#include "adapters/oci/edits_json.h"

namespace hf::oci {

using document::JsonPlaces;

Result<std::string> allow_in_resources(std::string_view text, const std::vector<container::NodeEdit>& nodes) {
  if (!document::is_json(text)) {
    return fail(std::errc::invalid_argument, "the resources are not JSON");
  }
  const JsonPlaces places = TRY(JsonPlaces::read(text));
  const JsonPlaces::Place* list =
      places.root().kind == JsonPlaces::Kind::object ? TRY(places.member(places.root(), "devices")) : nullptr;
  if (list == nullptr || list->kind != JsonPlaces::Kind::array || list->first == 0) {
    return std::string(text);
  }
  std::string more;
  for (const container::NodeEdit& node : nodes) {
    more += node.device ? "," + document::render_json(json_of_rule(*node.device, node.access)) : "";
  }
  document::Splices splices;
  splices.insert(list->end - 1, more);
  return splices.apply(text);
}

}  // namespace hf::oci
