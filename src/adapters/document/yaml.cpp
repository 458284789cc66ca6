#include "adapters/document/yaml.h"

#include <algorithm>
#include <array>
#include <map>
#include <new>
#include <optional>

#include <yaml.h>

#include "adapters/document/text.h"

namespace hf::document {
namespace {

constexpr std::size_t kDeepest = 64;

std::string_view text_of(const yaml_char_t* text) {
  return text == nullptr ? std::string_view() : reinterpret_cast<const char*>(text);
}

bool is_null_scalar(const yaml_event_t& event) {
  constexpr std::array<std::string_view, 5> kNulls = {"", "~", "null", "Null", "NULL"};
  const auto& scalar = event.data.scalar;
  const std::string_view value(reinterpret_cast<const char*>(scalar.value), scalar.length);
  return scalar.style == YAML_PLAIN_SCALAR_STYLE && (scalar.tag == nullptr || value.empty()) &&
         std::ranges::find(kNulls, value) != kNulls.end();
}

std::unexpected<Error> fail_at(const yaml_mark_t& mark, const std::string& why) {
  return fail(std::errc::invalid_argument,
              "line " + std::to_string(mark.line + 1) + ", column " + std::to_string(mark.column + 1) + ": " + why);
}

class Event {
 public:
  Event() = default;
  ~Event() { yaml_event_delete(&event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  Event(Event&&) = delete;
  Event& operator=(Event&&) = delete;

  yaml_event_t& get() { return event_; }

 private:
  yaml_event_t event_{};
};

}  // namespace

class YamlReader {
 public:
  explicit YamlReader(std::string_view text) {
    if (yaml_parser_initialize(&parser_) == 0) {
      throw std::bad_alloc();
    }
    if (text.starts_with(kByteOrderMark)) {
      text.remove_prefix(kByteOrderMark.size());  // libyaml would count it as a column
    }
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~YamlReader() { yaml_parser_delete(&parser_); }
  YamlReader(const YamlReader&) = delete;
  YamlReader& operator=(const YamlReader&) = delete;
  YamlReader(YamlReader&&) = delete;
  YamlReader& operator=(YamlReader&&) = delete;

  Result<YamlDocument> read() {
    while (TRY(take_next())) {
    }
    // What follows a document must be another one: "{a: b}} c" is none at all.
    Event next;
    if (yaml_parser_parse(&parser_, &next.get()) == 0) {
      return syntax_error();
    }
    return std::move(document_);
  }

 private:
  // A list or a map whose end has not been read.
  struct Open {
    Yaml::Value* value = nullptr;
    std::string anchor;
    std::optional<Yaml> key;  // of a map: one that waits for its value
  };

  [[nodiscard]] std::unexpected<Error> syntax_error() const {
    const std::string problem = parser_.problem == nullptr ? "no YAML" : parser_.problem;
    if (parser_.error == YAML_READER_ERROR) {
      return fail(std::errc::invalid_argument, "byte " + std::to_string(parser_.problem_offset) + ": " + problem);
    }
    const std::string context = parser_.context == nullptr ? "" : std::string(parser_.context) + ": ";
    return fail_at(parser_.problem_mark, context + problem);
  }

  // Whether the document goes on.
  Result<bool> take_next() {
    Event event;
    return yaml_parser_parse(&parser_, &event.get()) == 0 ? Result<bool>(syntax_error()) : take(event.get());
  }

  Result<bool> take(const yaml_event_t& event) {
    switch (event.type) {
      case YAML_ALIAS_EVENT: return add_alias(event);
      case YAML_SCALAR_EVENT: add_scalar(event); return true;
      case YAML_SEQUENCE_START_EVENT: return open(Yaml::Kind::list, event, text_of(event.data.sequence_start.anchor));
      case YAML_MAPPING_START_EVENT: return open(Yaml::Kind::map, event, text_of(event.data.mapping_start.anchor));
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT: close(); return true;
      case YAML_DOCUMENT_END_EVENT:
      case YAML_STREAM_END_EVENT: return false;
      default: return true;
    }
  }

  Result<bool> add_alias(const yaml_event_t& event) {
    const auto anchor = anchors_.find(text_of(event.data.alias.anchor));
    if (anchor == anchors_.end()) {
      return fail_at(event.start_mark, "no value before it has this anchor");
    }
    add(anchor->second);
    return true;
  }

  void add_scalar(const yaml_event_t& event) {
    Yaml::Value& value = document_.values_.emplace_front();
    if (!is_null_scalar(event)) {
      value.kind = Yaml::Kind::scalar;
      value.scalar.assign(reinterpret_cast<const char*>(event.data.scalar.value), event.data.scalar.length);
    }
    name(text_of(event.data.scalar.anchor), Yaml(value));
    add(Yaml(value));
  }

  Result<bool> open(Yaml::Kind kind, const yaml_event_t& event, std::string_view anchor) {
    if (open_.size() == kDeepest) {
      return fail_at(event.start_mark, "nested too deep");
    }
    Yaml::Value& value = document_.values_.emplace_front();
    value.kind = kind;
    open_.push_back({&value, std::string(anchor), std::nullopt});
    return true;
  }

  void close() {
    const Open closed = std::move(open_.back());
    open_.pop_back();
    name(closed.anchor, Yaml(*closed.value));
    add(Yaml(*closed.value));
  }

  // A value gets its name when it is complete, so that none contains itself.
  void name(std::string_view anchor, Yaml value) {
    if (!anchor.empty()) {
      anchors_.insert_or_assign(std::string(anchor), value);
    }
  }

  void add(Yaml value) {
    if (open_.empty()) {
      document_.root_ = value;
      return;
    }
    Open& parent = open_.back();
    if (parent.value->kind == Yaml::Kind::list) {
      parent.value->elements.push_back(value);
    } else if (!parent.key) {
      parent.key = value;
    } else {
      parent.value->members.emplace_back(*parent.key, value);
      parent.key.reset();
    }
  }

  yaml_parser_t parser_{};
  YamlDocument document_;
  std::vector<Open> open_;
  std::map<std::string, Yaml, std::less<>> anchors_;
};

bool Yaml::is(Kind kind) const { return value_ != nullptr && value_->kind == kind; }

const std::string& Yaml::scalar() const {
  static const std::string kNothing;
  return value_ == nullptr ? kNothing : value_->scalar;
}

std::span<const Yaml> Yaml::elements() const {
  return value_ == nullptr ? std::span<const Yaml>() : std::span<const Yaml>(value_->elements);
}

std::span<const Yaml::Member> Yaml::members() const {
  return value_ == nullptr ? std::span<const Member>() : std::span<const Member>(value_->members);
}

Yaml Yaml::operator[](std::string_view key) const {
  const auto all = members();
  const auto found = std::ranges::find_if(
      all, [key](const Member& member) { return member.first.is_scalar() && member.first.scalar() == key; });
  return found == all.end() ? Yaml() : found->second;
}

Result<YamlDocument> YamlDocument::parse(std::string_view text) { return YamlReader(text).read(); }

}  // namespace hf::document
