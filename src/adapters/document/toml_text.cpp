#include "adapters/document/toml_text.h"

#include <algorithm>
#include <map>

#include "core/base/text.h"

namespace hf::document {
namespace {

using Kind = TomlStatement::Kind;
using Statements = std::vector<TomlStatement>;

TomlPath parent_of(const TomlPath& path) { return {path.begin(), path.end() - 1}; }

std::string newline_of(std::string_view text) { return text.find("\r\n") == std::string_view::npos ? "\n" : "\r\n"; }

bool needs_no_quotes(std::string_view key) { return !key.empty() && std::ranges::all_of(key, is_key_character); }

// Containerd 2 writes its keys in single quotes, the others in double quotes.
char quote_in(std::string_view text) {
  const bool is_single = text.find(".'") != std::string_view::npos && text.find(".\"") == std::string_view::npos;
  return is_single ? '\'' : '"';
}

std::string key_in(std::string_view text, const std::string& key) {
  const char delimiter = quote_in(text);
  return needs_no_quotes(key) ? key : delimiter + key + delimiter;
}

std::string assignment_of(std::string_view text, const std::string& key, std::string_view value) {
  return key_in(text, key).append(" = ").append(value).append(newline_of(text));
}

std::string header_in(std::string_view text, const TomlPath& table) {
  std::vector<std::string> keys;
  for (const std::string& key : table) {
    keys.push_back(key_in(text, key));
  }
  return "[" + join(keys, ".") + "]";
}

std::string indent_of(std::string_view text, const TomlStatement& statement) {
  return std::string(text.substr(statement.begin, statement.start - statement.begin));
}

struct Indent {
  std::string header;
  std::string value;
};

// The indentation of the existing tables below the same parent.
Indent indent_below(std::string_view text, const Statements& statements, const TomlPath& parent) {
  for (auto statement = statements.begin(); statement != statements.end(); ++statement) {
    const bool is_sibling = statement->kind == Kind::table && statement->path.size() == parent.size() + 1 &&
                            is_below(statement->path, parent);
    if (!is_sibling) {
      continue;
    }
    const auto next = statement + 1;
    const bool has_value = next != statements.end() && next->kind == Kind::value;
    const std::string header = indent_of(text, *statement);
    return {header, has_value ? indent_of(text, *next) : header + "  "};
  }
  return {"", "  "};
}

// The direct values of each table; an outer table comes before its inner ones.
std::map<TomlPath, TomlValues> by_table(const TomlValues& values) {
  std::map<TomlPath, TomlValues> tables;
  for (const auto& [path, value] : values) {
    tables[parent_of(path)].emplace(path, value);
  }
  return tables;
}

std::string block_of(std::string_view text, const TomlPath& table, const TomlValues& values, const Indent& indent) {
  const std::string newline = newline_of(text);
  std::string block;
  for (const auto& [path, entries] : by_table(values)) {
    const std::string nested(2 * (path.size() - table.size()), ' ');
    const std::string deeper = indent.header.empty() ? "" : nested;
    block.append(block.empty() ? "" : newline).append(indent.header).append(deeper);
    block.append(header_in(text, path)).append(newline);
    for (const auto& [key, value] : entries) {
      block.append(indent.value).append(deeper).append(assignment_of(text, key.back(), value));
    }
  }
  return block;
}

// Inserts a block with an empty line before it. It ends with a newline only if the text before it does.
std::string with_block(std::string_view text, std::size_t at, std::string block) {
  const std::string newline = newline_of(text);
  const bool is_unterminated = at > 0 && text[at - 1] != '\n';
  if (is_unterminated) {
    block.resize(block.size() - newline.size());
    block.insert(0, newline);
  }
  const std::string gap = at == 0 ? "" : newline;
  return std::string(text.substr(0, at)) + gap + block + std::string(text.substr(at));
}

std::size_t end_of_tables_in(std::string_view text, const Statements& statements, const TomlPath& parent) {
  std::size_t end = text.size();
  bool is_inside = false;
  for (const TomlStatement& statement : statements) {
    // The new header must come after all values of these tables: values after it would belong to the new table.
    is_inside = is_below(statement.path, parent) || (is_inside && statement.kind == Kind::value);
    end = is_inside ? statement.end : end;
  }
  return end;
}

// The empty line before a table is removed with it.
std::size_t begin_with_gap(std::string_view text, std::size_t begin) {
  const std::string newline = newline_of(text);
  return text.substr(0, begin).ends_with(newline + newline) ? begin - newline.size() : begin;
}

// Drops the last newline if the original text had none.
std::string with_ending_of(std::string rest, std::string_view text) {
  const std::string newline = newline_of(text);
  if (!text.ends_with('\n') && rest.ends_with(newline)) {
    rest.resize(rest.size() - newline.size());
  }
  return rest;
}

}  // namespace

std::string with_table(std::string_view text, const TomlPath& table, const TomlValues& values) {
  const Statements statements = scan_toml(text);
  const TomlPath parent = parent_of(table);
  const Indent indent = indent_below(text, statements, parent);
  return with_block(text, end_of_tables_in(text, statements, parent), block_of(text, table, values, indent));
}

std::string with_value(std::string_view text, const TomlPath& path, std::string_view value) {
  const Statements statements = scan_toml(text);
  for (const TomlStatement& statement : statements) {
    if (statement.kind == Kind::value && statement.path == path) {
      return std::string(text.substr(0, statement.value)) + std::string(value) +
             std::string(text.substr(statement.value_end));
    }
  }
  const TomlPath table = parent_of(path);
  for (auto header = statements.begin(); header != statements.end(); ++header) {
    if (header->kind != Kind::table || header->path != table) {
      continue;
    }
    const auto next = header + 1;
    const bool has_value = next != statements.end() && next->kind == Kind::value;
    const std::string own = indent_of(text, *header);
    const std::string indent = has_value ? indent_of(text, *next) : own.empty() ? "" : own + "  ";
    std::string edited(text.substr(0, header->end));
    edited.append(edited.ends_with('\n') ? "" : newline_of(text)).append(indent);
    return edited.append(assignment_of(text, path.back(), value)).append(text.substr(header->end));
  }
  return with_table(text, table, {{path, std::string(value)}});
}

std::string without(std::string_view text, const TomlPath& path) {
  const Statements statements = scan_toml(text);
  std::string rest;
  std::size_t kept = 0;
  for (const TomlStatement& statement : statements) {
    if (!is_below(statement.path, path)) {
      continue;
    }
    const bool is_table = statement.kind == Kind::table;
    const std::size_t begin = is_table ? begin_with_gap(text, statement.begin) : statement.begin;
    rest += text.substr(kept, std::max(begin, kept) - kept);
    kept = std::max(statement.end, kept);
  }
  return with_ending_of(rest + std::string(text.substr(kept)), text);
}

std::string without_empty_table(std::string_view text, const TomlPath& table) {
  const Statements statements = scan_toml(text);
  for (auto header = statements.begin(); header != statements.end(); ++header) {
    const auto next = header + 1;
    const bool is_empty = next == statements.end() || next->kind == Kind::table;
    if (header->kind == Kind::table && header->path == table && is_empty) {
      const std::string rest(text.substr(0, begin_with_gap(text, header->begin)));
      return with_ending_of(rest + std::string(text.substr(header->end)), text);
    }
  }
  return std::string(text);
}

bool has_header(std::string_view text, const TomlPath& table) {
  return std::ranges::any_of(scan_toml(text), [&table](const TomlStatement& statement) {
    return statement.kind == Kind::table && statement.path == table;
  });
}

std::optional<std::string> value_in(std::string_view text, const TomlPath& path) {
  for (const TomlStatement& statement : scan_toml(text)) {
    if (statement.kind == Kind::value && statement.path == path) {
      return std::string(text.substr(statement.value, statement.value_end - statement.value));
    }
  }
  return std::nullopt;
}

}  // namespace hf::document
