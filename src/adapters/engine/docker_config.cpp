#include "adapters/engine/docker_config.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "adapters/engine/json_text.h"
#include "core/base/text.h"

namespace hf::engine {
namespace {

using Json = nlohmann::json;

constexpr const char* kRuntimes = "runtimes";
constexpr const char* kDefault = "default-runtime";
constexpr const char* kPath = "path";

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

Result<void> check_once(std::string_view text, const JsonObject& object, std::string_view key) {
  const auto is_key = [key](const JsonMember& member) { return member.key == key; };
  const auto first = std::ranges::find_if(object.members, is_key);
  if (first == object.members.end()) {
    return {};
  }
  const auto second = std::find_if(first + 1, object.members.end(), is_key);
  if (second == object.members.end()) {
    return {};
  }
  return fail(std::errc::invalid_argument,
              line_and_column(text, second->begin) + ": " + in_quotes(key) + " stands here for the second time");
}

struct Parts {
  JsonObject top;
  std::optional<JsonObject> runtimes;
  std::optional<JsonObject> ours;
};

Result<Parts> read_parts(std::string_view text) {
  Parts parts;
  parts.top = TRY(read_json_object(text));
  TRY(check_once(text, parts.top, kRuntimes));
  TRY(check_once(text, parts.top, kDefault));
  const JsonMember* runtimes = parts.top.find(kRuntimes);
  if (runtimes == nullptr) {
    return parts;
  }
  parts.runtimes = read_json_object(text, *runtimes);
  if (!parts.runtimes) {
    return fail(std::errc::invalid_argument, line_and_column(text, runtimes->value) + ": \"runtimes\" is no object");
  }
  TRY(check_once(text, *parts.runtimes, kRuntimeName));
  const JsonMember* ours = parts.runtimes->find(kRuntimeName);
  if (ours != nullptr) {
    parts.ours = read_json_object(text, *ours);
    TRY(parts.ours ? check_once(text, *parts.ours, kPath) : Result<void>());
  }
  return parts;
}

Result<std::string> with_runtime(std::string_view text, const std::string& path) {
  const Parts parts = TRY(read_parts(text));
  const JsonLayout layout = layout_of(text, parts.top);
  const std::string value = in_quotes(path);
  if (!parts.runtimes) {
    return with_member(text, parts.top, layout,
                       {kRuntimes, nest(layout, 1, kRuntimeName, nest(layout, 2, kPath, value)), 1});
  }
  const JsonMember* ours = parts.runtimes->find(kRuntimeName);
  if (ours == nullptr) {
    return with_member(text, *parts.runtimes, layout, {kRuntimeName, nest(layout, 2, kPath, value), 2});
  }
  if (!parts.ours) {
    return with_value(text, *ours, nest(layout, 2, kPath, value));
  }
  const JsonMember* old = parts.ours->find(kPath);
  return old == nullptr ? with_member(text, *parts.ours, layout, {kPath, value, 3}) : with_value(text, *old, value);
}

Result<std::string> with_default(std::string_view text) {
  const JsonObject top = TRY(read_json_object(text));
  const JsonMember* old = top.find(kDefault);
  const std::string value = in_quotes(kRuntimeName);
  return old == nullptr ? with_member(text, top, layout_of(text, top), {kDefault, value, 1})
                        : with_value(text, *old, value);
}

Result<void> check_edited(std::string_view text, const Json& expected) {
  TRY(read_json_object(text));
  if (Json::parse(text) != expected) {
    return fail(std::errc::invalid_argument, "it cannot be changed without changing more than that");
  }
  return {};
}

bool is_our_default(const Json& tree) {
  const auto name = tree.find(kDefault);
  return name != tree.end() && *name == kRuntimeName;
}

std::string without_runtime(std::string_view text, const Parts& parts, const Json& before_tree) {
  const bool is_alone = parts.runtimes->members.size() == 1;
  return is_alone && !before_tree.contains(kRuntimes) ? without_member(text, parts.top, kRuntimes)
                                                      : without_member(text, *parts.runtimes, kRuntimeName);
}

// The default runtime in the earlier text, if there is one that is not holdfast.
std::optional<std::string> default_in(Before before, const Json& before_tree) {
  if (!before || !before_tree.contains(kDefault) || is_our_default(before_tree)) {
    return std::nullopt;
  }
  const Result<JsonObject> top = read_json_object(*before);
  const JsonMember* member = top->find(kDefault);
  return std::string(before->substr(member->value, member->end - member->value));
}

Json tree_of(Before before) {
  const bool is_readable = before && read_json_object(*before);
  return is_readable ? Json::parse(*before) : Json::object();
}

}  // namespace

Result<Edited> add_to_docker(std::string_view text, const Registration& registration) {
  TRY(check_program_path(registration.program));
  const std::string empty_object = "{\n}\n";
  const std::string_view old = trim(text).empty() ? std::string_view(empty_object) : text;
  const Result<std::optional<Registered>> found = find_in_docker(old);
  if (!found) {
    return std::unexpected(found.error());
  }
  Json expected = Json::parse(old);
  Edited edited{std::string(old), {}};
  const bool has_program = *found && (*found)->program == registration.program;
  if (!has_program) {
    edited.text = TRY(with_runtime(old, registration.program));
    Json& ours = expected[kRuntimes][kRuntimeName];
    ours = ours.is_object() ? ours : Json::object();
    ours[kPath] = registration.program;
  }
  if (registration.standing == Standing::by_default && !is_our_default(expected)) {
    edited.text = TRY(with_default(edited.text));
    expected[kDefault] = kRuntimeName;
  }
  TRY(check_edited(edited.text, expected));
  return edited;
}

Result<std::string> remove_from_docker(std::string_view text, Before before) {
  const Result<std::optional<Registered>> found = find_in_docker(text);
  if (!found || !*found) {
    return found ? Result<std::string>(std::string(text)) : std::unexpected(found.error());
  }
  Json expected = Json::parse(text);
  const Json before_tree = tree_of(before);
  std::string edited(text);
  const Parts parts = TRY(read_parts(text));
  if (parts.runtimes && parts.runtimes->find(kRuntimeName) != nullptr) {
    edited = without_runtime(text, parts, before_tree);
    expected[kRuntimes].erase(kRuntimeName);
  }
  if (expected.contains(kRuntimes) && expected[kRuntimes].empty() && !before_tree.contains(kRuntimes)) {
    expected.erase(kRuntimes);
  }
  if (is_our_default(expected)) {
    const JsonObject top = TRY(read_json_object(edited));
    const std::optional<std::string> old = default_in(before, before_tree);
    edited = old ? with_value(edited, *top.find(kDefault), *old) : without_member(edited, top, kDefault);
    expected.erase(kDefault);
    if (old) {
      expected[kDefault] = before_tree[kDefault];
    }
  }
  TRY(check_edited(edited, expected));
  return edited;
}

Result<std::optional<Registered>> find_in_docker(std::string_view text) {
  if (trim(text).empty()) {
    return std::nullopt;
  }
  const Parts parts = TRY(read_parts(text));
  const Json tree = Json::parse(text);
  const bool has_runtime = parts.runtimes && parts.runtimes->find(kRuntimeName) != nullptr;
  if (!has_runtime && !is_our_default(tree)) {
    return std::nullopt;
  }
  Registered registered;
  registered.standing = is_our_default(tree) ? Standing::by_default : Standing::offered;
  const JsonMember* path = parts.ours ? parts.ours->find(kPath) : nullptr;
  const Json program = path == nullptr ? Json() : Json::parse(text.substr(path->value, path->end - path->value));
  if (program.is_string()) {
    registered.program = program.get<std::string>();
  }
  return registered;
}

bool is_empty_docker_config(std::string_view text) {
  const Result<JsonObject> top = read_json_object(text);
  return trim(text).empty() || (top && top->members.empty());
}

}  // namespace hf::engine
