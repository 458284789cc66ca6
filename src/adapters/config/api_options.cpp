#include "adapters/config/api_options.h"

#include <optional>

#include "adapters/config/fields.h"
#include "core/base/text.h"

namespace hf::config {
namespace {

constexpr const char* kWhere = "kube.api";
constexpr std::uint32_t kLongestSpread = 3600;

Result<ApiUse> use_of(Yaml node) {
  const std::string text = TRY(scalar_of(node, "kube.api.enabled"));
  if (text == "auto") {
    return ApiUse::automatic;
  }
  if (text == "on" || text == "true") {  // helm reads "on" as YAML 1.1 does and writes "true"
    return ApiUse::on;
  }
  if (text == "off" || text == "false") {
    return ApiUse::off;
  }
  return malformed("kube.api.enabled: " + quote(text) + " is none of auto, on, off");
}

}  // namespace

Result<void> parse_api(Yaml node, ApiSettings& api) {
  if (!node || node.is_null()) {
    return {};
  }
  TRY(check_keys(node, kWhere, {"enabled", "kubeconfig", "node", "events", "condition", "taint", "spread"}));
  api.use = node["enabled"] ? TRY(use_of(node["enabled"])) : api.use;
  if (node["kubeconfig"]) {
    api.kubeconfig = TRY(scalar_of(node["kubeconfig"], "kube.api.kubeconfig"));
    if (!api.kubeconfig.starts_with('/')) {
      return malformed("kube.api.kubeconfig: " + quote(api.kubeconfig) + " is not an absolute path");
    }
  }
  api.node = node["node"] ? TRY(scalar_of(node["node"], "kube.api.node")) : api.node;
  TRY(read_switch(node, kWhere, "events", api.writes_events));
  TRY(read_switch(node, kWhere, "condition", api.writes_condition));
  TRY(read_switch(node, kWhere, "taint", api.writes_taint));
  if (node["spread"]) {
    const std::optional<std::uint32_t> seconds =
        parse_number<std::uint32_t>(TRY(scalar_of(node["spread"], "kube.api.spread")));
    if (!seconds || *seconds > kLongestSpread) {
      return malformed("kube.api.spread wants seconds, from 0 to " + std::to_string(kLongestSpread));
    }
    api.spread = *seconds;
  }
  return {};
}

}  // namespace hf::config
