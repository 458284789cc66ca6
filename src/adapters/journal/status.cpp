#include "adapters/journal/status.h"

#include <tuple>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"

namespace hf::journal {

std::string render_status(const Status& status) {
  document::OrderedJson json = to_json(status.program);
  json["v1"] = status.tiers.has_v1 ? to_string(status.tiers.v1) : "";
  json["v2"] = status.tiers.has_v2 ? to_string(status.tiers.v2) : "";
  json["why"] = status.tiers.why;
  return document::render_json(json) + "\n";
}

Result<Status> parse_status(std::string_view text) {
  const document::Json json = TRY(document::parse_object(text, kStatusFile));
  Status status;
  status.program = TRY(parse_program(json, kStatusFile));
  status.tiers.why = TRY(document::require_strings(json, "why", {kStatusFile}));
  for (const auto& [key, has, tier] : {std::tuple("v1", &status.tiers.has_v1, &status.tiers.v1),
                                       std::tuple("v2", &status.tiers.has_v2, &status.tiers.v2)}) {
    const std::string name = TRY(document::require_string(json, key, {kStatusFile}));
    *has = !name.empty();
    if (*has) {
      *tier = TRY(container::parse_tier(name));
    }
  }
  return status;
}

Result<void> write_status(const kernel::Host& host, const Status& status) {
  return write_run_file(host, "status.json", render_status(status));
}

std::optional<Status> read_status(const kernel::Host& host) { return read_run_file(host, kStatusFile, parse_status); }

}  // namespace hf::journal
