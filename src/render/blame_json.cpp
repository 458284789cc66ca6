#include "render/blame.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstdio>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "render/time.h"

namespace hf::report {
namespace {

using Json = nlohmann::ordered_json;
using container::EventKind;
using container::Hierarchy;
using container::Writer;

constexpr int kVersion = 1;  // of the schema in docs/JSON.md

// A byte takes at most six bytes of JSON: four lists, the parents, a pod and thirteen texts stay below kMostLine.
constexpr std::size_t kMostText = 4096;
constexpr std::size_t kMostThrough = 8;
constexpr std::size_t kMostName = 64;
constexpr std::size_t kMostEntry = 256;
constexpr std::size_t kMostEntries = 100;

// The output is ASCII, so that a program that shows it unchanged meets no control character.
std::string dump(const Json& json, int indent) { return json.dump(indent, ' ', true, Json::error_handler_t::replace); }

void put(Json& json, const char* key, const std::string& text) {
  if (!text.empty()) {
    json[key] = cut_to(text, kMostText);
  }
}

void put(Json& json, const char* key, const std::vector<std::string>& list) {
  if (list.empty()) {
    return;
  }
  const std::size_t shown = list.size() > kMostEntries ? kMostEntries - 1 : list.size();
  Json& entries = json[key] = Json::array();
  for (std::size_t i = 0; i < shown; ++i) {
    entries.push_back(cut_to(list[i], kMostEntry));
  }
  if (shown < list.size()) {
    entries.push_back("and " + std::to_string(list.size() - shown) + " more");
  }
}

Json to_json(const Writer& writer) {
  Json json = {{"pid", writer.pid.value}};
  put(json, "name", writer.name);
  put(json, "program", writer.program);
  put(json, "command", writer.command);
  for (const std::string& one : writer.through) {
    if (json["through"].size() < kMostThrough) {
      json["through"].push_back(cut_to(one, kMostName));
    }
  }
  put(json, "service", writer.service);
  put(json, "inside", writer.inside);
  for (const container::Ancestor& parent : writer.parents) {
    if (json["parents"].size() < kMostEntries) {
      json["parents"].push_back({{"pid", parent.pid.value}, {"name", cut_to(parent.name, kMostName)}});
    }
  }
  return json;
}

Json to_json(const container::Pod& pod) {
  Json json = Json::object();
  put(json, "uid", cut_to(pod.uid, kMostEntry));
  put(json, "name", cut_to(pod.name, kMostEntry));
  put(json, "namespace", cut_to(pod.name_space, kMostEntry));
  put(json, "container", cut_to(pod.container, kMostEntry));
  return json;
}

Json to_json(const BlameRecord& record) {
  Json json = {{"number", record.number}, {"at", render_moment(record.at)}};
  put(json, "id", record.id);
  put(json, "container", record.container);
  put(json, "engine", record.engine);
  put(json, "namespace", record.name_space);
  if (record.pod) {
    json["pod"] = to_json(*record.pod);
  }
  json["kind"] = to_string(record.kind);
  json["hierarchy"] = record.hierarchy == Hierarchy::v1 ? "v1" : "v2";
  put(json, "cgroup", record.cgroup);
  json["writer"] = to_json(record.writer);
  if (record.program) {
    json["program"] = record.program->value;
  }
  if (record.replaced) {
    json["replaced"] = record.replaced->value;
  }
  put(json, "text", record.text);
  put(json, "lost", record.lost);
  put(json, "gained", record.gained);
  put(json, "devices", record.devices);
  put(json, "doubt", record.doubt);
  json["action"] = to_string(record.action);
  put(json, "steps", record.steps);
  if (record.loss_ns) {
    json["loss_ns"] = *record.loss_ns;
  }
  if (record.heal_ns) {
    json["heal_ns"] = *record.heal_ns;
  }
  if (record.is_shielded) {
    json["shielded"] = true;
  }
  if (record.held_opens != 0) {
    json["held_opens"] = record.held_opens;
  }
  put(json, "error", record.error);
  return json;
}

std::unexpected<Error> fail_at(const std::string& key) {
  return fail(std::errc::invalid_argument, "parse blame record: " + key);
}

// Reads the fields of an object and remembers the first one that is invalid.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  void read(const char* key, std::string& text) {
    if (const Json* const found = find(key); found != nullptr && check(key, found->is_string())) {
      text = found->get<std::string>();
    }
  }

  void read(const char* key, std::vector<std::string>& list) {
    const Json* const found = find(key);
    if (found == nullptr || !check(key, found->is_array() && found->size() <= kMostEntries)) {
      return;
    }
    for (const Json& entry : *found) {
      if (check(key, entry.is_string())) {
        list.push_back(entry.get<std::string>());
      }
    }
  }

  void read(const char* key, bool& value) {
    if (const Json* const found = find(key); found != nullptr && check(key, found->is_boolean())) {
      value = found->get<bool>();
    }
  }

  template <std::integral T>
  void read(const char* key, T& number) {
    const Json* const found = find(key);
    if (found != nullptr && check(key, found->is_number_unsigned())) {
      const auto value = found->get<std::uint64_t>();
      if (check(key, std::in_range<T>(value))) {
        number = T(value);
      }
    }
  }

  template <class T>
  void read(const char* key, std::optional<T>& value) {
    if (find(key) != nullptr) {
      read(key, value.emplace());
    }
  }

  template <class Tag, class T>
  void read(const char* key, StrongId<Tag, T>& id) {
    read(key, id.value);
  }

  [[nodiscard]] const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }

  bool check(const char* key, bool fine) {
    if (!fine && wrong_.empty()) {
      wrong_ = key;
    }
    return fine;
  }

  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  const Json& json_;
  std::string wrong_;
};

Result<Writer> writer_of(const Json& json) {
  if (!json.is_object()) {
    return fail_at("'writer' is no object");
  }
  Writer writer;
  Reader reader(json);
  reader.read("pid", writer.pid);
  reader.read("name", writer.name);
  reader.read("program", writer.program);
  reader.read("command", writer.command);
  reader.read("through", writer.through);
  reader.read("service", writer.service);
  reader.read("inside", writer.inside);
  if (const Json* const parents = reader.find("parents");
      parents != nullptr && reader.check("parents", parents->is_array() && parents->size() <= kMostEntries)) {
    for (const Json& entry : *parents) {
      if (reader.check("parents", entry.is_object())) {
        Reader parent(entry);
        container::Ancestor& ancestor = writer.parents.emplace_back();
        parent.read("pid", ancestor.pid);
        parent.read("name", ancestor.name);
        reader.check("parents", parent.wrong().empty());
      }
    }
  }
  return reader.wrong().empty() ? Result<Writer>(std::move(writer))
                                : fail_at("writer has a wrong '" + reader.wrong() + "'");
}

// Only pods that a CRI named are in records.
Result<container::Pod> pod_of(const Json& json) {
  if (!json.is_object()) {
    return fail_at("'pod' is no object");
  }
  container::Pod pod;
  Reader reader(json);
  reader.read("uid", pod.uid);
  reader.read("name", pod.name);
  reader.read("namespace", pod.name_space);
  reader.read("container", pod.container);
  pod.is_named_by_cri = true;
  return reader.wrong().empty() ? Result<container::Pod>(std::move(pod))
                                : fail_at("pod has a wrong '" + reader.wrong() + "'");
}

Result<EventKind> kind_of(const std::string& text) {
  for (int number = 0; number <= int(EventKind::found_changed); ++number) {
    if (to_string(EventKind(number)) == text) {
      return EventKind(number);
    }
  }
  return fail_at("kind " + quote(text));
}

Result<Hierarchy> hierarchy_of(const std::string& text) {
  if (text != "v1" && text != "v2") {
    return fail_at("hierarchy " + quote(text));
  }
  return text == "v1" ? Hierarchy::v1 : Hierarchy::v2;
}

Result<Action> action_of(const std::string& text) {
  const std::optional<Action> action = parse_action(text);
  return action ? Result<Action>(*action) : fail_at("action " + quote(text));
}

Result<BlameRecord> record_of(const Json& json) {
  BlameRecord record;
  Reader reader(json);
  int version = 0;
  std::string at;
  std::string kind;
  std::string hierarchy;
  std::string action;
  reader.read("version", version);
  reader.read("number", record.number);
  reader.read("at", at);
  reader.read("id", record.id);
  reader.read("container", record.container);
  reader.read("engine", record.engine);
  reader.read("namespace", record.name_space);
  reader.read("kind", kind);
  reader.read("hierarchy", hierarchy);
  reader.read("cgroup", record.cgroup);
  reader.read("program", record.program);
  reader.read("replaced", record.replaced);
  reader.read("text", record.text);
  reader.read("lost", record.lost);
  reader.read("gained", record.gained);
  reader.read("devices", record.devices);
  reader.read("doubt", record.doubt);
  reader.read("action", action);
  reader.read("steps", record.steps);
  reader.read("loss_ns", record.loss_ns);
  reader.read("heal_ns", record.heal_ns);
  reader.read("shielded", record.is_shielded);
  reader.read("held_opens", record.held_opens);
  reader.read("error", record.error);
  if (!reader.wrong().empty()) {
    return fail_at("a wrong '" + reader.wrong() + "'");
  }
  if (version != kVersion) {
    return fail_at("version " + std::to_string(version) + ", want " + std::to_string(kVersion));
  }
  record.at = TRY(parse_moment(at));
  record.kind = TRY(kind_of(kind));
  record.hierarchy = TRY(hierarchy_of(hierarchy));
  record.action = TRY(action_of(action));
  if (const Json* const writer = reader.find("writer"); writer != nullptr) {
    record.writer = TRY(writer_of(*writer));
  }
  if (const Json* const pod = reader.find("pod"); pod != nullptr) {
    record.pod = TRY(pod_of(*pod));
  }
  return record;
}

}  // namespace

std::string render_line(const BlameRecord& record) {
  Json json = {{"version", kVersion}};
  json.update(to_json(record));
  return dump(json, -1);
}

Result<BlameRecord> parse_blame_record(std::string_view line) {
  if (line.size() > kMostLine) {
    return fail_at("a line of " + std::to_string(line.size()) + " bytes");
  }
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) {
    return fail_at(quote(line) + " is no JSON object");
  }
  return record_of(json);
}

std::string render_json(const std::vector<BlameRecord>& records) {
  Json list = Json::array();
  for (const BlameRecord& record : records) {
    list.push_back(to_json(record));
  }
  return dump({{"version", kVersion}, {"records", list}}, 2) + "\n";
}

}  // namespace hf::report
