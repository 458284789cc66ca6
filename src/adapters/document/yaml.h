// Yaml: parses YAML, and reads its values by their keys.
#pragma once

#include <cstdint>
#include <forward_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace hf::document {

// A value of a YamlDocument, which must outlive it. Lenient access: what is missing or of another type is a view of
// nothing, "" or empty.
class Yaml {
 public:
  enum class Kind : std::uint8_t { null, scalar, list, map };
  struct Value;
  using Member = std::pair<Yaml, Yaml>;  // a key, and its value

  Yaml() = default;
  explicit Yaml(const Value& value) : value_(&value) {}

  explicit operator bool() const { return value_ != nullptr; }
  [[nodiscard]] bool is_null() const { return is(Kind::null); }  // `key:`, ~ or null
  [[nodiscard]] bool is_scalar() const { return is(Kind::scalar); }
  [[nodiscard]] bool is_list() const { return is(Kind::list); }
  [[nodiscard]] bool is_map() const { return is(Kind::map); }

  [[nodiscard]] const std::string& scalar() const;
  [[nodiscard]] std::span<const Yaml> elements() const;
  [[nodiscard]] std::span<const Member> members() const;
  Yaml operator[](std::string_view key) const;  // of two members with the same key the first

 private:
  [[nodiscard]] bool is(Kind kind) const;

  const Value* value_ = nullptr;
};

struct Yaml::Value {
  Kind kind = Kind::null;
  std::string scalar;
  std::vector<Yaml> elements;
  std::vector<Member> members;
};

class YamlDocument {
 public:
  // The first document of the text. The error names the line and the column. An alias is the value that its anchor
  // names: all values together may be far larger than the text. Values nested deeper than 64 levels are refused.
  static Result<YamlDocument> parse(std::string_view text);

  YamlDocument(YamlDocument&&) = default;  // a value stays where it is
  YamlDocument& operator=(YamlDocument&&) = default;
  YamlDocument(const YamlDocument&) = delete;
  YamlDocument& operator=(const YamlDocument&) = delete;
  ~YamlDocument() = default;

  [[nodiscard]] Yaml root() const { return root_; }  // nothing where the text has no value

 private:
  friend class YamlReader;
  YamlDocument() = default;

  std::forward_list<Yaml::Value> values_;
  Yaml root_;
};

}  // namespace hf::document
