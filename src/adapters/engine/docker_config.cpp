#include "adapters/engine/docker_config.h"

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "adapters/document/json_text.h"
#include "adapters/document/text.h"
#include "core/base/text.h"

namespace hf::engine {
namespace {

using document::in_quotes;
using document::Json;
using document::JsonLayout;
using document::JsonPlaces;
using Place = JsonPlaces::Place;

constexpr const char* kRuntimes = "runtimes";
constexpr const char* kDefault = "default-runtime";
constexpr const char* kPath = "path";
constexpr document::Limits kLimits = {.depth = 200};  // deeper than any real config, and comparing trees is recursive

// A config file: its values, and where they stand in the text.
struct Config {
  Json tree;
  JsonPlaces places;
  const Place* runtimes = nullptr;
  const Place* ours = nullptr;  // holdfast's entry, of any type
};

// The first member with this key; null where there is none.
const Place* find(const JsonPlaces& places, const Place& object, std::string_view key) {
  const std::vector<const Place*> found = places.members(object, key);
  return found.empty() ? nullptr : found.front();
}

Result<void> check_once(const JsonPlaces& places, const Place& object, std::string_view key) {
  const std::vector<const Place*> found = places.members(object, key);
  if (found.size() < 2) {
    return {};
  }
  return fail(std::errc::invalid_argument, document::line_and_column(places.text(), found[1]->key_begin) + ": " +
                                               in_quotes(key) + " stands here for the second time");
}

Result<Config> read_config(std::string_view text) {
  Json tree = TRY(document::parse_json(text, kLimits));
  JsonPlaces places = TRY(document::read_object_places(text));
  Config config{std::move(tree), std::move(places)};
  const Place& top = config.places.root();
  TRY(check_once(config.places, top, kRuntimes));
  TRY(check_once(config.places, top, kDefault));
  config.runtimes = find(config.places, top, kRuntimes);
  if (config.runtimes == nullptr) {
    return config;
  }
  if (config.runtimes->kind != JsonPlaces::Kind::object) {
    return fail(std::errc::invalid_argument,
                document::line_and_column(text, config.runtimes->begin) + ": \"runtimes\" is no object");
  }
  TRY(check_once(config.places, *config.runtimes, kRuntimeName));
  config.ours = find(config.places, *config.runtimes, kRuntimeName);
  if (config.ours != nullptr) {
    TRY(check_once(config.places, *config.ours, kPath));
  }
  return config;
}

std::string with_runtime(const Config& config, const std::string& path) {
  const JsonPlaces& places = config.places;
  const JsonLayout layout = layout_of(places);
  const std::string value = in_quotes(path);
  const std::string entry = nest(layout, 2, kPath, value);
  if (config.runtimes == nullptr) {
    return with_member(places, places.root(), {kRuntimes, nest(layout, 1, kRuntimeName, entry), 1});
  }
  if (config.ours == nullptr) {
    return with_member(places, *config.runtimes, {kRuntimeName, entry, 2});
  }
  if (config.ours->kind != JsonPlaces::Kind::object) {
    return with_value(places, *config.ours, entry);
  }
  const Place* old = find(places, *config.ours, kPath);
  return old == nullptr ? with_member(places, *config.ours, {kPath, value, 3}) : with_value(places, *old, value);
}

Result<std::string> with_default(std::string_view text) {
  const JsonPlaces places = TRY(document::read_object_places(text));
  const Place* old = find(places, places.root(), kDefault);
  const std::string value = in_quotes(kRuntimeName);
  return old == nullptr ? with_member(places, places.root(), {kDefault, value, 1}) : with_value(places, *old, value);
}

Result<void> check_edited(std::string_view text, const Json& expected) {
  if (TRY(document::parse_json(text, kLimits)) != expected) {
    return fail(std::errc::invalid_argument, "it cannot be changed without changing more than that");
  }
  return {};
}

bool is_our_default(const Json& tree) { return document::string_at(tree, kDefault) == kRuntimeName; }

std::string without_runtime(const Config& config, const Json& before_tree) {
  const bool is_alone = config.runtimes->first == config.runtimes->last;
  return is_alone && !before_tree.contains(kRuntimes)
             ? without_member(config.places, config.places.root(), *config.runtimes)
             : without_member(config.places, *config.runtimes, *config.ours);
}

// The default runtime in the earlier text, if there is one that is not holdfast.
std::optional<std::string> default_in(Before before, const Json& before_tree) {
  if (!before || !before_tree.contains(kDefault) || is_our_default(before_tree)) {
    return std::nullopt;
  }
  const Result<JsonPlaces> places = document::read_object_places(*before);
  return std::string(places->text_of(*find(*places, places->root(), kDefault)));
}

Json tree_of(Before before) {
  const Result<Json> tree = document::parse_json(before.value_or(""), kLimits);
  return tree && tree->is_object() ? *tree : Json::object();
}

// A runtime that the earlier text has, and the present one has no longer: dockerd refuses such a default.
bool was_removed(const std::string& runtime, const Json& before, const Json& now) {
  return document::object_at(before, kRuntimes).contains(runtime) &&
         !document::object_at(now, kRuntimes).contains(runtime);
}

// With the default runtime of the earlier text in place of holdfast, or with none where that text names none.
Result<std::string> without_our_default(const std::string& text, Json& expected, Before before) {
  if (!is_our_default(expected)) {
    return text;
  }
  const Json before_tree = tree_of(before);
  const JsonPlaces places = TRY(document::read_object_places(text));
  const Place* ours = find(places, places.root(), kDefault);
  const std::string runtime = document::string_at(before_tree, kDefault).value_or("");
  const bool is_gone = was_removed(runtime, before_tree, expected);
  const std::optional<std::string> old = is_gone ? std::nullopt : default_in(before, before_tree);
  expected.erase(kDefault);
  if (old) {
    expected[kDefault] = before_tree[kDefault];
  }
  return old ? with_value(places, *ours, *old) : without_member(places, places.root(), *ours);
}

}  // namespace

Result<Edited> add_to_docker(std::string_view text, const Registration& registration) {
  TRY(check_program_path(registration.program));
  const std::string empty_object = "{\n}\n";
  const std::string_view old = trim(text).empty() ? std::string_view(empty_object) : text;
  const std::optional<Registered> found = TRY(find_in_docker(old));
  const Config config = TRY(read_config(old));
  Json expected = config.tree;
  Edited edited{std::string(old), {}};
  const bool has_program = found && found->program == registration.program;
  if (!has_program) {
    edited.text = with_runtime(config, registration.program);
    Json& ours = expected[kRuntimes][kRuntimeName];
    ours = ours.is_object() ? ours : Json::object();
    ours[kPath] = registration.program;
  }
  if (registration.role == RuntimeRole::offered) {
    edited.text = TRY(without_our_default(edited.text, expected, registration.before));
  } else if (!is_our_default(expected)) {
    edited.text = TRY(with_default(edited.text));
    expected[kDefault] = kRuntimeName;
  }
  TRY(check_edited(edited.text, expected));
  return edited;
}

Result<std::string> remove_from_docker(std::string_view text, Before before) {
  if (!TRY(find_in_docker(text))) {
    return std::string(text);
  }
  const Config config = TRY(read_config(text));
  Json expected = config.tree;
  const Json before_tree = tree_of(before);
  std::string edited(text);
  if (config.ours != nullptr) {
    edited = without_runtime(config, before_tree);
    expected[kRuntimes].erase(kRuntimeName);
  }
  if (expected.contains(kRuntimes) && expected[kRuntimes].empty() && !before_tree.contains(kRuntimes)) {
    expected.erase(kRuntimes);
  }
  edited = TRY(without_our_default(edited, expected, before));
  TRY(check_edited(edited, expected));
  return edited;
}

Result<std::optional<Registered>> find_in_docker(std::string_view text) {
  if (trim(text).empty()) {
    return std::nullopt;
  }
  const Config config = TRY(read_config(text));
  const bool is_default = is_our_default(config.tree);
  if (config.ours == nullptr && !is_default) {
    return std::nullopt;
  }
  const Json& ours = document::object_at(document::object_at(config.tree, kRuntimes), kRuntimeName);
  return Registered{document::string_at(ours, kPath), is_default ? RuntimeRole::by_default : RuntimeRole::offered};
}

bool is_empty_docker_config(std::string_view text) {
  const Result<Json> tree = document::parse_json(text, kLimits);
  return trim(text).empty() || (tree && tree->is_object() && tree->empty());
}

}  // namespace hf::engine
