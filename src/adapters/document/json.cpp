#include "adapters/document/json.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "adapters/document/text.h"

namespace hf::document {
namespace {

// Calls `visit` with the characters that are in no string, until it returns false.
template <class Visit>
void visit_outside_strings(std::string_view text, Visit visit) {
  bool is_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char character = text[at];
    if (is_string) {
      at += character == '\\' ? 1 : 0;
      is_string = character != '"';
    } else if (character == '"') {
      is_string = true;
    } else if (!visit(character)) {
      return;
    }
  }
}

bool is_opening(char character) { return character == '{' || character == '['; }
bool is_closing(char character) { return character == '}' || character == ']'; }

bool has_too_many_keys(std::string_view text, const Limits& limits) {
  std::vector<std::size_t> keys;  // of each object and list around
  bool has_too_many = false;
  visit_outside_strings(text, [&](char character) {
    if (is_opening(character)) {
      keys.push_back(0);
    } else if (is_closing(character) && !keys.empty()) {
      keys.pop_back();
    } else if (character == ':' && !keys.empty()) {
      has_too_many = ++keys.back() > limits.keys;
    }
    return !has_too_many && keys.size() <= limits.depth;
  });
  return has_too_many;
}

Result<void> check_limits(std::string_view text, const Limits& limits) {
  if (text.size() > limits.bytes) {
    return fail(std::errc::value_too_large, "it is longer than " + std::to_string(limits.bytes) + " bytes");
  }
  if (limits.keys != std::numeric_limits<std::size_t>::max() && has_too_many_keys(text, limits)) {
    return fail(std::errc::value_too_large, "an object has more than " + std::to_string(limits.keys) + " keys");
  }
  const bool has_limit = limits.depth != std::numeric_limits<std::size_t>::max();
  if (has_limit && limits.deeper == Deeper::refused && json_depth(text) > limits.depth) {
    return fail(std::errc::value_too_large, "it is nested too deep");
  }
  return {};
}

// Discarded where the text is no JSON.
template <AnyJson T>
T parse_tree(std::string_view text, const Limits& limits) {
  if (limits.deeper == Deeper::refused) {
    return T::parse(text, nullptr, /*allow_exceptions=*/false);
  }
  const auto is_within_limit = [&limits](int depth, typename T::parse_event_t, T&) {
    return std::size_t(depth) < limits.depth;
  };
  return T::parse(text, is_within_limit, /*allow_exceptions=*/false);
}

std::string describe_fault(std::string_view text) {
  const JsonFault fault = find_json_fault(text).value_or(JsonFault());
  return fault.kind == JsonFault::Kind::syntax ? line_and_column(text, fault.offset) + ": this is no JSON"
                                               : "it has a number that is out of range";
}

std::unexpected<Error> wrong(const Where& where, std::string_view key, const std::string& what) {
  const std::string path = where.path.empty() ? "" : where.path + ".";
  return fail(std::errc::invalid_argument, where.document + ": " + path + std::string(key) + " is not " + what);
}

}  // namespace

std::optional<JsonFault> find_json_fault(std::string_view text) {
  try {
    [[maybe_unused]] const Json tree = Json::parse(text);
    return std::nullopt;
  } catch (const Json::parse_error& error) {
    return JsonFault{JsonFault::Kind::syntax, error.byte == 0 ? 0 : error.byte - 1};
  } catch (const Json::exception&) {
    return JsonFault{JsonFault::Kind::number_out_of_range, 0};
  }
}

bool is_json(std::string_view text) { return Json::accept(text); }

std::size_t json_depth(std::string_view text) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  visit_outside_strings(text, [&](char character) {
    if (is_opening(character)) {
      deepest = std::max(deepest, ++depth);
    } else if (is_closing(character) && depth > 0) {
      --depth;
    }
    return true;
  });
  return deepest;
}

template <AnyJson T>
Result<T> parse_json(std::string_view text, const Limits& limits) {
  TRY(check_limits(text, limits));
  T tree = parse_tree<T>(text, limits);
  if (tree.is_discarded()) {
    return fail(std::errc::invalid_argument, describe_fault(text));
  }
  return tree;
}
template Result<Json> parse_json(std::string_view text, const Limits& limits);
template Result<OrderedJson> parse_json(std::string_view text, const Limits& limits);

Result<Json> parse_object(std::string_view text, const std::string& what, const Limits& limits) {
  Result<Json> tree = parse_json(text, limits);
  if (!tree) {
    return fail(tree.error().code, "parse " + what + ": " + tree.error().message);
  }
  if (!tree->is_object()) {
    return fail(std::errc::invalid_argument, "parse " + what + ": not a JSON object");
  }
  return tree;
}

template <AnyJson T>
std::string render_json(const T& value, int indent) {
  return value.dump(indent, ' ', false, T::error_handler_t::replace);
}
template std::string render_json(const Json& value, int indent);
template std::string render_json(const OrderedJson& value, int indent);

template <AnyJson T>
const T* value_at(const T& value, std::string_view key) {
  const auto found = value.is_object() ? value.find(key) : value.end();
  return found == value.end() || found->is_null() ? nullptr : &*found;
}
template const Json* value_at(const Json& value, std::string_view key);
template const OrderedJson* value_at(const OrderedJson& value, std::string_view key);

const Json& object_at(const Json& value, std::string_view key) {
  static const Json empty = Json::object();
  const Json* found = value_at(value, key);
  return found != nullptr && found->is_object() ? *found : empty;
}

const Json& array_at(const Json& value, std::string_view key) {
  static const Json empty = Json::array();
  const Json* found = value_at(value, key);
  return found != nullptr && found->is_array() ? *found : empty;
}

std::optional<std::string> string_at(const Json& value, std::string_view key) {
  const Json* found = value_at(value, key);
  return found != nullptr && found->is_string() ? std::optional(found->get<std::string>()) : std::nullopt;
}

std::optional<bool> bool_at(const Json& value, std::string_view key) {
  const Json* found = value_at(value, key);
  return found != nullptr && found->is_boolean() ? std::optional(found->get<bool>()) : std::nullopt;
}

std::optional<std::uint64_t> uint_at(const Json& value, std::string_view key, std::uint64_t limit) {
  const Json* found = value_at(value, key);
  const bool fits = found != nullptr && found->is_number_unsigned() && found->get<std::uint64_t>() <= limit;
  return fits ? std::optional(found->get<std::uint64_t>()) : std::nullopt;
}

std::vector<std::string> strings_at(const Json& value, std::string_view key) {
  std::vector<std::string> strings;
  for (const Json& entry : array_at(value, key)) {
    if (entry.is_string()) {
      strings.push_back(entry.get<std::string>());
    }
  }
  return strings;
}

std::map<std::string, std::string> string_map_at(const Json& value, std::string_view key) {
  std::map<std::string, std::string> strings;
  for (const auto& [name, entry] : object_at(value, key).items()) {
    strings[name] = entry.is_string() ? entry.template get<std::string>() : std::string();
  }
  return strings;
}

Result<std::string> require_string(const Json& object, std::string_view key, const Where& where) {
  std::optional<std::string> text = string_at(object, key);
  return text ? Result<std::string>(*std::move(text)) : wrong(where, key, "a text");
}

Result<std::uint64_t> require_uint(const Json& object, std::string_view key, std::uint64_t limit, const Where& where) {
  const Json* found = value_at(object, key);
  const bool is_zero = found != nullptr && found->is_number_integer() && *found == 0;  // "-0" is signed
  const std::optional<std::uint64_t> number = is_zero ? 0 : uint_at(object, key, limit);
  return number ? Result<std::uint64_t>(*number) : wrong(where, key, "a number from 0 to " + std::to_string(limit));
}

Result<std::vector<std::string>> require_strings(const Json& object, std::string_view key, const Where& where) {
  const Json* found = value_at(object, key);
  const bool is_list = found != nullptr && found->is_array() &&
                       std::ranges::all_of(*found, [](const Json& entry) { return entry.is_string(); });
  return is_list ? Result<std::vector<std::string>>(strings_at(object, key)) : wrong(where, key, "a list of texts");
}

}  // namespace hf::document
