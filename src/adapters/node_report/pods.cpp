#include "adapters/node_report/pods.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "core/base/text.h"

namespace hf::node_report {
namespace {

using document::Json;

// A list, its items, a pod, its spec, containers, a container: what is deeper is not needed, and is not kept.
constexpr document::Limits kLimits = {.bytes = kMostPodBytes, .depth = 7, .deeper = document::Deeper::dropped};

bool is_ready(const Json& status) {
  const Json& conditions = document::array_at(status, "conditions");
  return std::ranges::any_of(conditions, [](const Json& condition) {
    return document::string_at(condition, "type") == "Ready" && document::string_at(condition, "status") == "True";
  });
}

Result<std::string> name_at(const Json& object, std::string_view key, const std::string& what) {
  std::string name = document::string_at(object, key).value_or("");
  if (!report::is_cluster_name(name)) {
    return fail(std::errc::invalid_argument, "kubectl names a pod whose " + what + " is " + quote(name));
  }
  return name;
}

Result<report::PodEntry> entry_of(const Json& pod) {
  const Json& metadata = document::object_at(pod, "metadata");
  const Json& spec = document::object_at(pod, "spec");
  const Json& status = document::object_at(pod, "status");
  report::PodEntry entry;
  entry.name_space = TRY(name_at(metadata, "namespace", "namespace"));
  entry.name = TRY(name_at(metadata, "name", "name"));
  if (document::value_at(spec, "nodeName") != nullptr) {
    entry.node = TRY(name_at(spec, "nodeName", "node"));
  }
  constexpr std::size_t kMostPhase = 32;
  entry.phase = cut_to(document::string_at(status, "phase").value_or(""), kMostPhase);
  entry.is_ready = is_ready(status);
  entry.is_ending = document::value_at(metadata, "deletionTimestamp") != nullptr;
  for (const Json& container : document::array_at(spec, "containers")) {
    entry.containers.push_back(document::string_at(container, "name").value_or(""));
  }
  return entry;
}

}  // namespace

Result<std::vector<report::PodEntry>> parse_pods(std::string_view text) {
  const Json list = TRY(document::parse_object(text, "the list of pods", kLimits));
  const Json* const items = document::value_at(list, "items");
  if (items == nullptr || !items->is_array()) {
    return fail(std::errc::invalid_argument, "parse the list of pods: it has no items");
  }
  std::vector<report::PodEntry> pods;
  for (const Json& item : *items) {
    pods.push_back(TRY(entry_of(item)));
  }
  return pods;
}

Result<report::PodEntry> parse_pod(std::string_view text) {
  return entry_of(TRY(document::parse_object(text, "the pod", kLimits)));
}

}  // namespace hf::node_report
