#include "core/report/blame.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstdio>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/report/utf8.h"

namespace hf::report {
namespace {

using Json = nlohmann::ordered_json;
using container::EventKind;
using container::Hierarchy;
using container::Writer;

constexpr int kVersion = 1;  // of the schema in docs/JSON.md

// Six bytes of JSON for one of ours at worst: four lists, the parents and thirteen texts stay below kMostLine.
constexpr std::size_t kMostText = 4096;
constexpr std::size_t kMostName = 64;
constexpr std::size_t kMostEntry = 256;
constexpr std::size_t kMostEntries = 100;

constexpr std::array<std::pair<Action, const char*>, 10> kActions = {{{Action::none, "none"},
                                                                      {Action::observed, "observed"},
                                                                      {Action::healed, "healed"},
                                                                      {Action::failed, "failed"},
                                                                      {Action::waits, "waits"},
                                                                      {Action::hardened, "hardened"},
                                                                      {Action::locked, "locked"},
                                                                      {Action::mended, "mended"},
                                                                      {Action::shielded, "shielded"},
                                                                      {Action::completed, "completed"}}};

// In ASCII: whatever shows the text as it is meets no control character.
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
  put(json, "through", writer.through);
  put(json, "service", writer.service);
  put(json, "inside", writer.inside);
  for (const container::Ancestor& parent : writer.parents) {
    if (json["parents"].size() < kMostEntries) {
      json["parents"].push_back({{"pid", parent.pid.value}, {"name", cut_to(parent.name, kMostName)}});
    }
  }
  return json;
}

Json to_json(const BlameRecord& record) {
  Json json = {{"number", record.number}, {"at", render_moment(record.at)}};
  put(json, "id", record.id);
  put(json, "container", record.container);
  put(json, "engine", record.engine);
  put(json, "namespace", record.name_space);
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

// Takes fields out of an object; the first that is not as it should be is remembered.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  void read(const char* key, std::string& text) {
    if (const Json* const found = find(key); found != nullptr && is(key, found->is_string())) {
      text = found->get<std::string>();
    }
  }

  void read(const char* key, std::vector<std::string>& list) {
    const Json* const found = find(key);
    if (found == nullptr || !is(key, found->is_array() && found->size() <= kMostEntries)) {
      return;
    }
    for (const Json& entry : *found) {
      if (is(key, entry.is_string())) {
        list.push_back(entry.get<std::string>());
      }
    }
  }

  void read(const char* key, bool& value) {
    if (const Json* const found = find(key); found != nullptr && is(key, found->is_boolean())) {
      value = found->get<bool>();
    }
  }

  template <std::integral T>
  void read(const char* key, T& number) {
    const Json* const found = find(key);
    if (found != nullptr && is(key, found->is_number_unsigned())) {
      const auto value = found->get<std::uint64_t>();
      if (is(key, std::in_range<T>(value))) {
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

  bool is(const char* key, bool fine) {
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
      parents != nullptr && reader.is("parents", parents->is_array() && parents->size() <= kMostEntries)) {
    for (const Json& entry : *parents) {
      if (reader.is("parents", entry.is_object())) {
        Reader parent(entry);
        container::Ancestor& ancestor = writer.parents.emplace_back();
        parent.read("pid", ancestor.pid);
        parent.read("name", ancestor.name);
        reader.is("parents", parent.wrong().empty());
      }
    }
  }
  return reader.wrong().empty() ? Result<Writer>(std::move(writer))
                                : fail_at("writer has a wrong '" + reader.wrong() + "'");
}

Result<EventKind> kind_of(const std::string& word) {
  for (int number = 0; number <= int(EventKind::found_changed); ++number) {
    if (to_string(EventKind(number)) == word) {
      return EventKind(number);
    }
  }
  return fail_at("kind " + quote(word));
}

Result<Hierarchy> hierarchy_of(const std::string& word) {
  if (word != "v1" && word != "v2") {
    return fail_at("hierarchy " + quote(word));
  }
  return word == "v1" ? Hierarchy::v1 : Hierarchy::v2;
}

Result<Action> action_of(const std::string& word) {
  for (const auto& [action, name] : kActions) {
    if (word == name) {
      return action;
    }
  }
  return fail_at("action " + quote(word));
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
  return record;
}

}  // namespace

std::string to_string(Action action) {
  for (const auto& [known, name] : kActions) {
    if (known == action) {
      return name;
    }
  }
  return "unknown";
}

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

std::string render_moment(std::int64_t milliseconds) {
  constexpr std::int64_t kLast = 253'402'300'799'999;  // the end of the year 9999, the last with four digits
  const std::chrono::sys_time<std::chrono::milliseconds> time(
      std::chrono::milliseconds(std::clamp<std::int64_t>(milliseconds, 0, kLast)));
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", int(date.year()),
                unsigned(date.month()), unsigned(date.day()), int(clock.hours().count()), int(clock.minutes().count()),
                int(clock.seconds().count()), int(clock.subseconds().count()));
  return text.data();
}

Result<std::int64_t> parse_moment(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00.000Z";
  const auto number = [text](std::size_t from, std::size_t length) {
    return parse_number<unsigned>(text.substr(from, length)).value_or(std::numeric_limits<unsigned>::max());
  };
  if (text.size() != kShape.size()) {
    return fail_at("time " + quote(text));
  }
  using namespace std::chrono;
  const year_month_day date(year(int(number(0, 4))), month(number(5, 2)), day(number(8, 2)));
  if (!date.ok() || number(11, 2) > 23 || number(14, 2) > 59 || number(17, 2) > 59 || number(20, 3) > 999) {
    return fail_at("time " + quote(text));
  }
  const milliseconds since = sys_days(date).time_since_epoch() + hours(number(11, 2)) + minutes(number(14, 2)) +
                             seconds(number(17, 2)) + milliseconds(number(20, 3));
  // Written anew, it must be the same: that covers the letters between the numbers, and years before 1970.
  return render_moment(since.count()) == text ? Result<std::int64_t>(since.count()) : fail_at("time " + quote(text));
}

}  // namespace hf::report
