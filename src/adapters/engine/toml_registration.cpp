#include "adapters/engine/toml_registration.h"

#include "adapters/document/text.h"
#include "adapters/document/toml_text.h"

namespace hf::engine {
namespace {

using document::has_header;
using document::in_quotes;
using document::is_below;
using document::parse_toml;
using document::string_at;
using document::value_in;
using document::with_table;
using document::with_value;
using document::without;
using document::without_empty_table;

bool has_entry(const TomlValues& values, const TomlPath& entry) {
  const auto first = values.lower_bound(entry);
  return first != values.end() && is_below(first->first, entry);
}

void erase_entry(TomlValues& values, const TomlPath& entry) {
  std::erase_if(values, [&entry](const auto& value) { return is_below(value.first, entry); });
}

bool is_our_default(const TomlValues& values, const RegistrationPaths& paths) {
  return string_at(values, paths.default_name) == kRuntimeName;
}

Result<void> check_edited(std::string_view text, const TomlValues& expected) {
  const Result<TomlValues> values = parse_toml(text);
  if (!values || *values != expected) {
    return fail(std::errc::invalid_argument,
                "tables that are written on one line, or with dotted keys, are in the way: write them with [table] "
                "headers");
  }
  return {};
}

std::string with_entry(std::string_view text, const RegistrationPaths& paths, const TomlValues& entry) {
  const auto value = entry.find(paths.entry);
  return value == entry.end() ? with_table(text, paths.entry, entry) : with_value(text, paths.entry, value->second);
}

// Removes the headers of outer tables that the removal has left empty, unless the original text had them.
std::string without_empty_headers(std::string text, TomlPath path, std::string_view before) {
  while (path.size() > 1) {
    path.pop_back();
    text = has_header(before, path) ? text : without_empty_table(text, path);
  }
  return text;
}

std::string_view readable(Before before) { return parse_toml(before.value_or("")) ? before.value_or("") : ""; }

// A runtime that the earlier text has, and the present one has no longer: an engine refuses such a default.
bool was_removed(const TomlPath& ours, const std::optional<std::string>& name, const TomlValues& before,
                 const TomlValues& now) {
  TomlPath entry = ours;
  entry.back() = name.value_or("");
  return has_entry(before, entry) && !has_entry(now, entry);
}

// With the default runtime of the earlier text in place of holdfast, or with none where that text names none.
Result<std::string> without_our_default(std::string_view text, const RegistrationPaths& paths, Before before) {
  TomlValues expected = TRY(parse_toml(text));
  if (!is_our_default(expected, paths)) {
    return std::string(text);
  }
  const std::string_view before_text = readable(before);
  const TomlValues before_values = TRY(parse_toml(before_text));
  const std::optional<std::string> old = value_in(before_text, paths.default_name);
  std::string edited;
  expected.erase(paths.default_name);
  const std::optional<std::string> name = string_at(before_values, paths.default_name);
  if (old && !is_our_default(before_values, paths) && !was_removed(paths.entry, name, before_values, expected)) {
    edited = with_value(text, paths.default_name, *old);
    expected.emplace(paths.default_name, before_values.at(paths.default_name));
  } else {
    edited = without_empty_headers(without(text, paths.default_name), paths.default_name, before_text);
  }
  TRY(check_edited(edited, expected));
  return edited;
}

std::string first_string_in(std::string_view list) {
  const std::size_t begin = list.find('"');
  const std::size_t end = begin == std::string_view::npos ? begin : list.find('"', begin + 1);
  return end == std::string_view::npos ? std::string() : std::string(list.substr(begin + 1, end - begin - 1));
}

}  // namespace

Result<std::string> add_registration(std::string_view text, const RegistrationPaths& paths, const TomlValues& entry,
                                     const Registration& registration) {
  TomlValues expected = TRY(parse_toml(text));
  TomlValues old = expected;
  std::erase_if(old, [&paths](const auto& value) { return !is_below(value.first, paths.entry); });
  std::string edited(text);
  if (old != entry) {
    const bool is_value = entry.contains(paths.entry) && old.contains(paths.entry);
    edited = with_entry(is_value ? edited : without(edited, paths.entry), paths, entry);
    erase_entry(expected, paths.entry);
    expected.insert(entry.begin(), entry.end());
    TRY(check_edited(edited, expected));
  }
  if (registration.role == RuntimeRole::offered) {
    return without_our_default(edited, paths, registration.before);
  }
  if (!is_our_default(expected, paths)) {
    edited = with_value(edited, paths.default_name, in_quotes(kRuntimeName));
    expected[paths.default_name] = in_quotes(kRuntimeName);
    TRY(check_edited(edited, expected));
  }
  return edited;
}

Result<std::string> remove_registration(std::string_view text, const RegistrationPaths& paths, Before before) {
  TomlValues expected = TRY(parse_toml(text));
  std::string edited(text);
  if (has_entry(expected, paths.entry)) {
    edited = without_empty_headers(without(edited, paths.entry), paths.entry, readable(before));
    erase_entry(expected, paths.entry);
    TRY(check_edited(edited, expected));
  }
  return without_our_default(edited, paths, before);
}

Result<std::optional<Registered>> find_registration(std::string_view text, const RegistrationPaths& paths) {
  const TomlValues values = TRY(parse_toml(text));
  const bool is_default = is_our_default(values, paths);
  if (!has_entry(values, paths.entry) && !is_default) {
    return std::nullopt;
  }
  Registered registered;
  registered.role = is_default ? RuntimeRole::by_default : RuntimeRole::offered;
  if (const auto program = values.find(paths.program); program != values.end()) {
    registered.program = first_string_in(program->second);
  }
  return registered;
}

TomlValues rebased(const TomlValues& values, const TomlPath& from, const TomlPath& to) {
  TomlValues result;
  for (const auto& [path, value] : values) {
    if (!is_below(path, from)) {
      continue;
    }
    TomlPath target = to;
    target.insert(target.end(), path.begin() + std::ptrdiff_t(from.size()), path.end());
    result.emplace(std::move(target), value);
  }
  return result;
}

}  // namespace hf::engine
