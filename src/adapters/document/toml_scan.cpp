#include <algorithm>

#include "adapters/document/text.h"
#include "adapters/document/toml_text.h"

namespace hf::document {
namespace {

// Scans a text that is known to be TOML: only the end of the text is checked.
class Scanner {
 public:
  explicit Scanner(std::string_view text)
      : text_(text), at_(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0), line_(at_) {}

  std::vector<TomlStatement> scan() {
    std::vector<TomlStatement> statements;
    while (skip_to_statement()) {
      statements.push_back(text_[at_] == '[' ? scan_header() : scan_value());
    }
    return statements;
  }

 private:
  [[nodiscard]] bool is_at(std::string_view token) const { return text_.substr(at_).starts_with(token); }
  [[nodiscard]] bool has_ended() const { return at_ >= text_.size(); }

  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t", at_), text_.size()); }

  void skip_line() {
    const std::size_t newline = text_.find('\n', at_);
    at_ = newline == std::string_view::npos ? text_.size() : newline + 1;
    line_ = at_;
  }

  bool skip_to_statement() {
    while (!has_ended()) {
      skip_blanks();
      const bool is_empty = is_at("#") || is_at("\n") || is_at("\r");
      if (!is_empty) {
        return !has_ended();
      }
      skip_line();
    }
    return false;
  }

  std::string scan_quoted(char delimiter) {
    std::string key;
    for (++at_; !has_ended() && text_[at_] != delimiter; ++at_) {
      const bool is_escape = delimiter == '"' && text_[at_] == '\\' && at_ + 1 < text_.size();
      at_ += is_escape ? 1 : 0;
      key += text_[at_];
    }
    ++at_;
    return key;
  }

  void scan_path(TomlPath& path) {
    while (!has_ended() && text_[at_] != '=' && text_[at_] != ']') {
      const char byte = text_[at_];
      if (byte == '"' || byte == '\'') {
        path.push_back(scan_quoted(byte));
      } else if (byte == '.' || byte == ' ' || byte == '\t') {
        ++at_;
      } else {
        const std::size_t end = std::min(text_.find_first_of(".=] \t", at_), text_.size());
        path.emplace_back(text_.substr(at_, end - at_));
        at_ = end;
      }
    }
  }

  TomlStatement scan_header() {
    TomlStatement statement{TomlStatement::Kind::table, {}, line_, at_, at_, at_, at_};
    at_ += is_at("[[") ? 2 : 1;
    scan_path(statement.path);
    table_ = statement.path;
    skip_line();
    statement.end = at_;
    return statement;
  }

  TomlStatement scan_value() {
    TomlStatement statement{TomlStatement::Kind::value, table_, line_, at_, at_, at_, at_};
    scan_path(statement.path);
    at_ = std::min(at_ + 1, text_.size());
    skip_blanks();
    statement.value = at_;
    skip_value();
    statement.value_end = at_;
    skip_line();
    statement.end = at_;
    return statement;
  }

  void skip_string() { at_ = std::min(end_of_toml_string(text_, at_), text_.size()); }

  void skip_value() {
    if (is_at("\"") || is_at("'")) {
      skip_string();
      return;
    }
    if (!is_at("[") && !is_at("{")) {
      const std::size_t end = std::min(text_.find_first_of("#\r\n", at_), text_.size());
      at_ = text_.substr(0, end).find_last_not_of(" \t") + 1;
      return;
    }
    std::size_t depth = 0;
    do {
      skip_in_list(depth);
    } while (!has_ended() && depth > 0);
  }

  void skip_in_list(std::size_t& depth) {
    if (is_at("\"") || is_at("'")) {
      skip_string();
      return;
    }
    if (is_at("#")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
      return;
    }
    depth += is_at("[") || is_at("{") ? 1 : 0;
    depth -= is_at("]") || is_at("}") ? 1 : 0;
    ++at_;
  }

  std::string_view text_;
  std::size_t at_;
  std::size_t line_;
  TomlPath table_;
};

}  // namespace

std::vector<TomlStatement> scan_toml(std::string_view text) { return Scanner(text).scan(); }

bool is_key_character(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '_' ||
         byte == '-';
}

}  // namespace hf::document
