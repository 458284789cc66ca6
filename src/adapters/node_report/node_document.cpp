#include "adapters/node_report/node_document.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "core/base/text.h"
#include "render/blame.h"
#include "render/time.h"

namespace hf::node_report {
namespace {

using container::State;
using document::Json;
using document::OrderedJson;

constexpr std::uint64_t kVersion = 1;        // of the schema in docs/JSON.md
constexpr std::size_t kMostText = 1024;      // bytes of one text
constexpr std::size_t kMostEntries = 64;     // of a list within an entry
constexpr std::size_t kMostListed = 20'000;  // of the document's list: each becomes a value of some kilobytes
// A container in `ps` has some thirty keys.
constexpr document::Limits kLimits = {.bytes = kMostDocument, .depth = 24, .keys = 256};

// A control character could be one of our own marks, which become colours.
std::string safe(std::string_view text) { return printable(cut_to(text, kMostText)); }

std::string text_at(const Json& object, std::string_view key) {
  return safe(document::string_at(object, key).value_or(""));
}

std::vector<std::string> texts_at(const Json& object, std::string_view key) {
  std::vector<std::string> texts = document::strings_at(object, key);
  texts.resize(std::min(texts.size(), kMostEntries));
  std::ranges::transform(texts, texts.begin(), safe);
  return texts;
}

void make_safe(Json& json) {
  if (json.is_string()) {
    json = safe(trim(json.get_ref<const std::string&>()));
  } else if (json.is_structured()) {
    std::ranges::for_each(json, make_safe);
  }
}

// A command with characters that are not safe to print is replaced: without them it would do something else.
std::vector<std::string> cures_at(const Json& object) {
  std::vector<std::string> cures = document::strings_at(object, "cure");
  cures.resize(std::min(cures.size(), kMostEntries));
  std::ranges::replace_if(cures, [](const std::string& cure) { return safe(cure) != cure; }, "holdfast doctor");
  return cures;
}

template <document::AnyJson T>
Result<T> parse_within_limits(std::string_view text) {
  Result<T> tree = document::parse_json<T>(text, kLimits);
  return tree ? std::move(tree) : fail(tree.error().code, "parse its answer: " + tree.error().message);
}

std::string text_in(const OrderedJson& object, std::string_view key) {
  const OrderedJson* const found = document::value_at(object, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

// Some elements have the pod itself; the others a title "pod/container", and the namespace beside it.
bool is_about(const OrderedJson& element, const report::PodName& pod) {
  if (const OrderedJson* const its = document::value_at(element, "pod"); its != nullptr) {
    return text_in(*its, "name") == pod.name && text_in(*its, "namespace") == pod.name_space;
  }
  return text_in(element, "namespace") == pod.name_space && text_in(element, "container").starts_with(pod.name + "/");
}

// The document, if it is one of this schema with that list.
Result<Json> parse_document(std::string_view text, std::string_view list) {
  Json json = TRY(parse_within_limits<Json>(text));
  const std::optional<std::uint64_t> version = document::uint_at(json, "version");
  if (!version) {
    return fail(std::errc::invalid_argument, "its answer has no version of the schema");
  }
  if (*version != kVersion) {
    return fail(std::errc::not_supported, "its answer has version " + std::to_string(*version) +
                                              " of the schema; this program reads version " + std::to_string(kVersion));
  }
  const Json* const found = document::value_at(json, list);
  if (found == nullptr || !found->is_array()) {
    return fail(std::errc::invalid_argument, "its answer has no list of " + std::string(list));
  }
  if (found->size() > kMostListed) {
    return fail(std::errc::value_too_large,
                "its answer has more than " + std::to_string(kMostListed) + " " + std::string(list));
  }
  return json;
}

template <class T, std::size_t N>
Result<T> one_of(const std::array<T, N>& values, const std::string& text, const std::string& what) {
  const auto found = std::ranges::find_if(values, [&text](T value) { return to_string(value) == text; });
  if (found == values.end()) {
    return fail(std::errc::invalid_argument, "its answer has the unknown " + what + " " + quote(text));
  }
  return *found;
}

Result<State> state_at(const Json& object) {
  constexpr std::array kStates = {State::ok,   State::at_risk,  State::partial, State::stale,
                                  State::lost, State::not_owed, State::unknown};
  return one_of(kStates, text_at(object, "state"), "state");
}

Result<report::Finding> finding_of(const Json& json) {
  using report::Severity;
  constexpr std::array kSeverities = {Severity::note, Severity::warning, Severity::critical};
  report::Finding finding;
  finding.code = text_at(json, "code");
  finding.severity = TRY(one_of(kSeverities, text_at(json, "severity"), "severity"));
  finding.subject = text_at(json, "subject");
  finding.container = text_at(json, "container");
  finding.what = text_at(json, "verdict");
  finding.evidence = texts_at(json, "evidence");
  finding.cure = cures_at(json);
  finding.needs_all_cures = document::bool_at(json, "needs_all_cures").value_or(false);
  return finding;
}

// Only the units are shown.
container::Entitlement entitlement_of(const Json& json) {
  container::Entitlement entitlement;
  for (const Json& node : document::array_at(json, "owed")) {
    if (text_at(node, "part") == to_string(device::Part::unit) && entitlement.nodes.size() < kMostEntries) {
      container::OwedNode& owed = entitlement.nodes.emplace_back();
      owed.path = text_at(node, "path");
      owed.device_class = text_at(node, "class");
    }
  }
  return entitlement;
}

// "2026-11-15T05:00:00Z"; 0 where it is no time.
std::int64_t seconds_at(const Json& object, std::string_view key) {
  const std::string text = text_at(object, key);
  return text.ends_with('Z') ? report::parse_moment(text.substr(0, text.size() - 1) + ".000Z").value_or(0) / 1000 : 0;
}

std::optional<std::string> known_at(const Json& object, std::string_view key) {
  const std::string text = text_at(object, key);
  return text.empty() ? std::nullopt : std::optional(text);
}

container::Container container_of(const Json& json) {
  container::Container it;
  it.id = container::ContainerId{text_at(json, "id")};
  it.name = known_at(json, "name");
  it.engine = known_at(json, "engine");
  it.cpus = known_at(json, "cpus");
  it.has_exclusive_cpus = document::bool_at(json, "cpus_exclusive").value_or(false);
  it.started_at = seconds_at(json, "started_at");
  if (const Json* const pod = document::value_at(json, "pod"); pod != nullptr) {
    it.pod = container::Pod{.uid = text_at(*pod, "uid"),
                            .name = text_at(*pod, "name"),
                            .name_space = text_at(*pod, "namespace"),
                            .container = text_at(*pod, "container")};
  }
  return it;
}

std::vector<cpu::NumaId> numa_nodes_at(const Json& json, std::string_view key) {
  std::vector<cpu::NumaId> nodes;
  for (const Json& entry : document::array_at(json, key)) {
    if (entry.is_number_unsigned() && nodes.size() < kMostEntries &&
        entry.get<std::uint64_t>() <= std::numeric_limits<std::uint32_t>::max()) {
      nodes.push_back(cpu::NumaId{entry.get<std::uint32_t>()});
    }
  }
  return nodes;
}

Result<cpu::CpuSet> cpus_at(const Json& json, std::string_view key) {
  return cpu::parse_cpu_set(document::string_at(json, key).value_or(""));
}

Result<report::CpuContainer> cpu_container_of(const Json& json) {
  report::CpuContainer one;
  one.title = text_at(json, "container");
  one.is_exclusive = document::bool_at(json, "exclusive").value_or(false);
  one.cpus = TRY(cpus_at(json, "cpus"));
  one.nodes = numa_nodes_at(json, "numa");
  one.device_nodes = numa_nodes_at(json, "device_numa");
  const auto distance = document::uint_at(json, "distance", std::numeric_limits<std::uint32_t>::max());
  one.distance = distance ? std::optional(std::uint32_t(*distance)) : std::nullopt;
  one.problem = text_at(json, "problem");
  return one;
}

}  // namespace

Result<report::DoctorReport> parse_doctor(std::string_view text) {
  const Json json = TRY(parse_document(text, "findings"));
  report::DoctorReport report;
  for (const Json& entry : document::array_at(json, "findings")) {
    report.findings.push_back(TRY(finding_of(entry)));
  }
  constexpr std::uint64_t kMostContainers = 1'000'000;
  report.containers = int(document::uint_at(json, "containers", kMostContainers).value_or(0));
  for (const State state : {State::ok, State::at_risk, State::partial, State::stale, State::lost, State::unknown}) {
    const Json& states = document::object_at(json, "states");
    report.states[to_string(state)] = int(document::uint_at(states, to_string(state), kMostContainers).value_or(0));
  }
  report.guard = text_at(json, "guard");
  return report;
}

Result<report::ContainerList> parse_containers(std::string_view text) {
  const Json json = TRY(parse_document(text, "containers"));
  report::ContainerList list;
  for (const Json& entry : document::array_at(json, "containers")) {
    report::ContainerLine& line = list.lines.emplace_back();
    line.container = container_of(entry);
    line.entitlement = entitlement_of(entry);
    line.state = TRY(state_at(entry));
  }
  return list;
}

Result<std::vector<report::BlameRecord>> parse_blame(std::string_view text) {
  const Json json = TRY(parse_document(text, "records"));
  std::vector<report::BlameRecord> records;
  for (const Json& entry : document::array_at(json, "records")) {
    Json record = entry;
    make_safe(record);
    if (record.is_object()) {
      record["version"] = kVersion;  // a line of the journal has it, an element of the list does not
    }
    records.push_back(TRY(report::parse_blame_record(document::render_json(record))));
  }
  return records;
}

Result<report::CpuStatus> parse_cpu_status(std::string_view text) {
  const Json json = TRY(parse_document(text, "containers"));
  report::CpuStatus status;
  for (const Json& entry : document::array_at(json, "containers")) {
    status.containers.push_back(TRY(cpu_container_of(entry)));
  }
  status.pool = TRY(cpus_at(json, "pool"));
  status.problem = text_at(json, "problem");
  return status;
}

Result<std::string> on_one_line(std::string_view text) {
  return document::render_json(TRY(parse_within_limits<OrderedJson>(text)));
}

Result<std::string> on_one_line_about(std::string_view text, const report::PodName& pod) {
  OrderedJson json = TRY(parse_within_limits<OrderedJson>(text));
  for (const char* const key : {"containers", "records"}) {
    if (document::value_at(json, key) != nullptr && json[key].is_array()) {
      OrderedJson kept = OrderedJson::array();
      std::ranges::copy_if(json[key], std::back_inserter(kept),
                           [&pod](const OrderedJson& element) { return is_about(element, pod); });
      json[key] = std::move(kept);
    }
  }
  return document::render_json(json);
}

}  // namespace hf::node_report
