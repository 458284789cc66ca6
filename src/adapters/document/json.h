// Json: parses JSON within limits, reads values by their keys, and writes them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/result.h"

namespace hf::document {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // keeps the order of the keys

template <class T>
concept AnyJson = std::same_as<T, Json> || std::same_as<T, OrderedJson>;

enum class Deeper : std::uint8_t { refused, dropped };

// Parsing does not recurse, but copying, comparing and writing a value do: a document needs a limit for its depth if
// its values are copied, compared or written.
struct Limits {
  std::size_t bytes = std::size_t(64) << 20U;
  std::size_t depth = std::numeric_limits<std::size_t>::max();  // of objects and lists
  Deeper deeper = Deeper::refused;                              // what becomes of values beyond that depth
  // Of one object. OrderedJson compares a new key with all others, so that many keys take quadratic time.
  std::size_t keys = std::numeric_limits<std::size_t>::max();
};

// Where a text is no JSON.
struct JsonFault {
  enum class Kind : std::uint8_t { syntax, number_out_of_range };

  Kind kind = Kind::syntax;
  std::size_t offset = 0;  // of a syntax error; the text's size where the text ends too early
};
std::optional<JsonFault> find_json_fault(std::string_view text);
bool is_json(std::string_view text);            // at any depth
std::size_t json_depth(std::string_view text);  // how deep its braces and brackets nest; it need not be valid JSON

// Of two members with the same key the last one counts. The code is value_too_large where the text exceeds a limit; any
// other error names the line and the column.
template <AnyJson T = Json>
Result<T> parse_json(std::string_view text, const Limits& limits = {});

// The error is "parse WHAT: not a JSON object".
Result<Json> parse_object(std::string_view text, const std::string& what, const Limits& limits = {});

inline constexpr int kOneLine = -1;
template <AnyJson T>
std::string render_json(const T& value, int indent = kOneLine);  // invalid UTF-8 becomes U+FFFD

// Lenient access: what is missing, null or of another type is absent or empty, also where `value` is no object.
template <AnyJson T>
const T* value_at(const T& value, std::string_view key);
const Json& object_at(const Json& value, std::string_view key);
const Json& array_at(const Json& value, std::string_view key);
std::optional<std::string> string_at(const Json& value, std::string_view key);
std::optional<bool> bool_at(const Json& value, std::string_view key);
std::optional<std::uint64_t> uint_at(const Json& value, std::string_view key,
                                     std::uint64_t limit = std::numeric_limits<std::uint64_t>::max());
std::vector<std::string> strings_at(const Json& value, std::string_view key);  // without the elements of other types
// A value that is no string becomes "".
std::map<std::string, std::string> string_map_at(const Json& value, std::string_view key);

// The object whose values are asked for: the document, and the path of the object's keys. Errors name both.
struct Where {
  std::string document;
  std::string path = {};
};

// Strict access: "config.json: linux.devices[0].major is not a number from 0 to 4095".
Result<std::string> require_string(const Json& object, std::string_view key, const Where& where);
Result<std::uint64_t> require_uint(const Json& object, std::string_view key, std::uint64_t limit, const Where& where);
Result<std::vector<std::string>> require_strings(const Json& object, std::string_view key, const Where& where);

}  // namespace hf::document
