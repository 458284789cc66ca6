#include "adapters/node_report/host_state.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "core/base/text.h"
#include "core/report/finding.h"
#include "render/time.h"

namespace hf::node_report {
namespace {

using container::State;
using document::Json;

constexpr std::size_t kMostBytes = std::size_t(64) << 20U;
constexpr std::size_t kMostContainers = 10'000;
constexpr std::size_t kMostNodes = 64;

// Lists that are not needed and may be long are not kept while parsing.
bool is_needed(int depth, Json::parse_event_t event, const Json& value) {
  constexpr std::array<std::string_view, 4> kSkipped = {"records", "devices", "counters", "cpus"};
  return depth != 1 || event != Json::parse_event_t::key ||
         std::ranges::find(kSkipped, value.get_ref<const std::string&>()) == kSkipped.end();
}

std::string text_at(const Json& json, const char* key) { return document::string_at(json, key).value_or(""); }

bool flag_at(const Json& json, const char* key) { return document::bool_at(json, key).value_or(false); }

std::optional<State> state_of(const std::string& text) {
  for (int number = 0; number <= int(State::unknown); ++number) {
    if (to_string(State(number)) == text) {
      return State(number);
    }
  }
  return std::nullopt;
}

// The worst finding of each container: findings are ordered by severity.
std::map<std::string, std::string> verdicts_of(const Json& findings) {
  std::map<std::string, std::string> verdicts;
  for (const Json& finding : findings) {
    if (const std::string container = text_at(finding, "container");
        !container.empty() && text_at(finding, "severity") != "note") {
      verdicts.try_emplace(container, printable(text_at(finding, "code") + ": " + text_at(finding, "verdict")));
    }
  }
  return verdicts;
}

template <class Predicate>
bool has_code(const Json& container, Predicate is_wanted) {
  return std::ranges::any_of(document::array_at(container, "findings"), [&](const Json& one) {
    return one.is_string() && is_wanted(one.get_ref<const std::string&>());
  });
}

notice::ContainerState container_of(const Json& json, State state) {
  notice::ContainerState it;
  it.id = text_at(json, "id");
  it.title = printable(text_at(json, "title"));
  it.state = state;
  it.is_hosts_fault = has_code(json, report::is_hosts_fault);
  if (const auto pod = json.find("pod"); pod != json.end() && pod->is_object()) {
    it.pod = container::Pod{text_at(*pod, "uid"), text_at(*pod, "name"), text_at(*pod, "namespace"),
                            text_at(*pod, "container"), flag_at(*pod, "named_by_cri")};
  }
  for (const Json& node : document::array_at(json, "nodes")) {
    if (flag_at(node, "troubled") && it.devices.size() < kMostNodes) {
      it.devices.push_back(printable(text_at(node, "path")));
    }
  }
  return it;
}

}  // namespace

Result<notice::HostState> parse_host_state(std::string_view snapshot) {
  const auto malformed = [](const std::string& why) {
    return fail(std::errc::invalid_argument, "parse the guard's snapshot: " + why);
  };
  if (snapshot.size() > kMostBytes) {
    return malformed(std::to_string(snapshot.size()) + " bytes");
  }
  const Json json = Json::parse(snapshot, is_needed, false);
  if (!json.is_object() || !json.contains("containers")) {
    return malformed("no JSON object with containers");
  }
  notice::HostState host;
  host.at = TRY(report::parse_moment(text_at(json, "at")));
  host.why_blind = flag_at(json, "blind") ? printable(text_at(json, "why_blind")) : std::string();
  if (flag_at(json, "blind") && host.why_blind.empty()) {
    host.why_blind = "no reason is known";
  }
  const std::map<std::string, std::string> verdicts = verdicts_of(document::array_at(json, "findings"));
  for (const Json& entry : document::array_at(json, "containers")) {
    const std::optional<State> state = state_of(text_at(entry, "state"));
    const bool is_ignored = state == State::not_owed && has_code(entry, report::is_unconfirmed_request);
    if (!state || (*state == State::not_owed && !is_ignored) || host.containers.size() >= kMostContainers) {
      continue;
    }
    notice::ContainerState it = container_of(entry, *state);
    const auto verdict = verdicts.find(it.id);
    it.verdict = verdict == verdicts.end() ? "" : verdict->second;
    host.containers.push_back(std::move(it));
  }
  return host;
}

}  // namespace hf::node_report
