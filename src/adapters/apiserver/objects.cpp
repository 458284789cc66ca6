#include "adapters/apiserver/objects.h"

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "core/base/text.h"
#include "render/notice.h"
#include "render/time.h"

namespace hf::apiserver {
namespace {

using document::OrderedJson;

constexpr const char* kComponent = "holdfast-kube";
constexpr document::Limits kLimits{.bytes = std::size_t(8) << 20U, .depth = 64};

std::string time_of(std::int64_t milliseconds) { return report::render_time(milliseconds / 1000); }

std::string events_of(const notice::EventWrite& write) {
  return "/api/v1/namespaces/" + write.event.pod.name_space + "/events";
}

std::string path_of(const std::string& node) { return "/api/v1/nodes/" + node; }

}  // namespace

Request create_event(const notice::EventWrite& write, const std::string& node) {
  const container::Pod& pod = write.event.pod;
  const OrderedJson json = {{"apiVersion", "v1"},
                            {"kind", "Event"},
                            {"metadata", {{"name", write.name}, {"namespace", pod.name_space}}},
                            {"involvedObject",
                             {{"apiVersion", "v1"},
                              {"kind", "Pod"},
                              {"name", pod.name},
                              {"namespace", pod.name_space},
                              {"uid", pod.uid}}},  // no fieldPath: an init container has another than the others
                            {"type", notice::is_warning(write.event.reason) ? "Warning" : "Normal"},
                            {"reason", to_string(write.event.reason)},
                            {"message", notice::render_message(write.event)},
                            {"count", write.count},
                            {"firstTimestamp", time_of(write.first_at)},
                            {"lastTimestamp", time_of(write.last_at)},
                            {"source", {{"component", kComponent}, {"host", node}}},
                            {"reportingComponent", kComponent},
                            {"reportingInstance", node}};
  return {"POST", events_of(write), document::render_json(json), kJson};
}

Request change_event(const notice::EventWrite& write) {
  const OrderedJson json = {{"count", write.count},
                            {"lastTimestamp", time_of(write.last_at)},
                            {"message", notice::render_message(write.event)}};
  return {"PATCH", events_of(write) + "/" + write.name, document::render_json(json), kStrategicMerge};
}

Request patch_condition(const std::string& node, const ConditionWrite& write) {
  OrderedJson condition = {{"type", notice::kConditionType},
                           {"status", to_string(write.condition.status)},
                           {"reason", write.condition.reason},
                           {"message", write.condition.message},
                           {"lastHeartbeatTime", time_of(write.at)}};
  if (write.changed_at) {
    condition["lastTransitionTime"] = time_of(*write.changed_at);
  }
  const OrderedJson json = {{"status", {{"conditions", OrderedJson::array({condition})}}}};
  return {"PATCH", path_of(node) + "/status", document::render_json(json), kStrategicMerge};
}

Request read_condition(const std::string& node) { return {"PATCH", path_of(node) + "/status", "{}", kStrategicMerge}; }

std::optional<notice::Status> find_status(std::string_view node) {
  const Result<document::Json> json = document::parse_object(node, "a node", kLimits);
  if (!json) {
    return std::nullopt;
  }
  for (const document::Json& condition : document::array_at(document::object_at(*json, "status"), "conditions")) {
    for (const notice::Status known : {notice::Status::yes, notice::Status::no, notice::Status::unknown}) {
      if (document::string_at(condition, "type") == notice::kConditionType &&
          document::string_at(condition, "status") == to_string(known)) {
        return known;
      }
    }
  }
  return std::nullopt;
}

Request read_node(const std::string& node) { return {"GET", path_of(node)}; }

Result<Taints> parse_taints(std::string_view body) {
  const document::Json node = TRY(document::parse_object(body, "a node", kLimits));
  Taints taints;
  taints.resource_version =
      TRY(document::require_string(document::object_at(node, "metadata"), "resourceVersion", {"a node", "metadata"}));
  document::Json others = document::Json::array();
  for (const document::Json& taint : document::array_at(document::object_at(node, "spec"), "taints")) {
    if (document::string_at(taint, "key") == notice::kTaintKey) {
      taints.has_ours = true;
    } else {
      others.push_back(taint);
    }
  }
  taints.others = document::render_json(others);
  return taints;
}

Request patch_taints(const std::string& node, const Taints& before, bool has_ours) {
  OrderedJson taints = OrderedJson::parse(before.others, nullptr, false);
  if (!taints.is_array()) {
    taints = OrderedJson::array();
  }
  if (has_ours) {
    taints.push_back({{"key", notice::kTaintKey}, {"value", "lost"}, {"effect", "NoSchedule"}});
  }
  const OrderedJson json = {{"metadata", {{"resourceVersion", before.resource_version}}},
                            {"spec", {{"taints", taints}}}};
  return {"PATCH", path_of(node), document::render_json(json), kMerge};
}

std::string message_of(const Response& response) {
  constexpr std::size_t kLongest = 300;
  const Result<document::Json> status = document::parse_object(response.body, "an answer", kLimits);
  const std::string text = status ? document::string_at(*status, "message").value_or("") : std::string();
  return printable(cut_to(text.empty() ? std::string_view(response.body) : std::string_view(text), kLongest));
}

}  // namespace hf::apiserver
