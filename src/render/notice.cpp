#include "render/notice.h"

#include <algorithm>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/report/finding.h"
#include "render/time.h"

namespace hf::notice {
namespace {

using Json = nlohmann::json;
using container::State;

constexpr std::size_t kLongest = 1024;
constexpr std::size_t kMostBytes = std::size_t(64) << 20U;
constexpr std::size_t kMostContainers = 10'000;
constexpr std::size_t kMostNodes = 64;

std::string devices_of(const PodEvent& event) {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::string> named(event.devices.begin(),
                                 event.devices.begin() + std::ptrdiff_t(std::min(event.devices.size(), kMostNamed)));
  if (named.size() < event.devices.size()) {
    named.push_back("and " + std::to_string(event.devices.size() - named.size()) + " more");
  }
  return named.empty() ? "its devices" : join(named, ", ");
}

std::string cause_of(const PodEvent& event) {
  return event.writer.is_known() ? ": its device rules were rewritten by " + title_of(event.writer) : std::string();
}

std::string detail_of(const PodEvent& event, const std::string& before) {
  return event.detail.empty() ? std::string() : before + event.detail;
}

std::string text_of(const PodEvent& event) {
  const std::string devices = devices_of(event);
  const std::string cause = cause_of(event);
  switch (event.reason) {
    case Reason::device_lost: return "cannot use " + devices + cause + detail_of(event, cause.empty() ? ": " : "; ");
    case Reason::device_restored:
      return "can use " + devices + " again" +
             (event.duration ? " after " + report::render_duration(*event.duration) : "") + cause;
    case Reason::device_shielded: return "kept " + devices + " open" + cause;
    case Reason::device_at_risk: return "may lose devices at the next reload or update" + detail_of(event, ": ");
    case Reason::device_set_completed: return "got " + devices + ", which its runtime had not given it";
    case Reason::device_request_ignored:
      return "asks for devices that no trusted source gives it, and runs without them: request them in the pod's "
             "resources";
  }
  return "";
}

// ---- The snapshot, read back ----

// Lists that are not needed and may be long are not kept while parsing.
bool is_needed(int depth, Json::parse_event_t event, const Json& value) {
  constexpr std::array<std::string_view, 4> kSkipped = {"records", "devices", "counters", "cpus"};
  return depth != 1 || event != Json::parse_event_t::key ||
         std::ranges::find(kSkipped, value.get_ref<const std::string&>()) == kSkipped.end();
}

std::string text_at(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

const Json& list_at(const Json& json, const char* key) {
  static const Json kNone = Json::array();
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() && found->is_array() ? *found : kNone;
}

bool flag_at(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() && found->is_boolean() && found->get<bool>();
}

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
  return std::ranges::any_of(list_at(container, "findings"), [&](const Json& one) {
    return one.is_string() && is_wanted(one.get_ref<const std::string&>());
  });
}

ContainerState container_of(const Json& json, State state) {
  ContainerState it;
  it.id = text_at(json, "id");
  it.title = printable(text_at(json, "title"));
  it.state = state;
  it.is_hosts_fault = has_code(json, report::is_hosts_fault);
  if (const auto pod = json.find("pod"); pod != json.end() && pod->is_object()) {
    it.pod = container::Pod{text_at(*pod, "uid"), text_at(*pod, "name"), text_at(*pod, "namespace"),
                            text_at(*pod, "container"), flag_at(*pod, "named_by_cri")};
  }
  for (const Json& node : list_at(json, "nodes")) {
    if (flag_at(node, "troubled") && it.devices.size() < kMostNodes) {
      it.devices.push_back(printable(text_at(node, "path")));
    }
  }
  return it;
}

}  // namespace

std::string render_message(const PodEvent& event) {
  return cut_to(printable("container " + event.pod.container + " " + text_of(event)), kLongest - 4);
}

Result<HostState> parse_host_state(std::string_view snapshot) {
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
  HostState host;
  host.at = TRY(report::parse_moment(text_at(json, "at")));
  host.why_blind = flag_at(json, "blind") ? printable(text_at(json, "why_blind")) : std::string();
  if (flag_at(json, "blind") && host.why_blind.empty()) {
    host.why_blind = "no reason is known";
  }
  const std::map<std::string, std::string> verdicts = verdicts_of(list_at(json, "findings"));
  for (const Json& entry : list_at(json, "containers")) {
    const std::optional<State> state = state_of(text_at(entry, "state"));
    const bool is_ignored = state == State::not_owed && has_code(entry, report::is_unconfirmed_request);
    if (!state || (*state == State::not_owed && !is_ignored) || host.containers.size() >= kMostContainers) {
      continue;
    }
    ContainerState it = container_of(entry, *state);
    const auto verdict = verdicts.find(it.id);
    it.verdict = verdict == verdicts.end() ? "" : verdict->second;
    host.containers.push_back(std::move(it));
  }
  return host;
}

}  // namespace hf::notice
