#include "adapters/engine/toml_registration.h"

namespace hf::engine {
namespace {

bool has_entry(const TomlValues& values, const TomlPath& entry) {
  const auto first = values.lower_bound(entry);
  return first != values.end() && is_below(first->first, entry);
}

void erase_entry(TomlValues& values, const TomlPath& entry) {
  std::erase_if(values, [&entry](const auto& value) { return is_below(value.first, entry); });
}

bool is_our_default(const TomlValues& values, const TomlPieces& pieces) {
  return read_toml_string(values, pieces.default_name) == kRuntimeName;
}

Result<void> prove(std::string_view text, const TomlValues& expected) {
  const Result<TomlValues> values = read_toml(text);
  if (!values || *values != expected) {
    return fail(std::errc::invalid_argument,
                "tables that are written on one line, or with dotted keys, are in the way: write them with heads");
  }
  return {};
}

std::string with_entry(std::string_view text, const TomlPieces& pieces, const TomlValues& entry) {
  const auto value = entry.find(pieces.entry);
  return value == entry.end() ? with_table(text, pieces.entry, entry) : with_value(text, pieces.entry, value->second);
}

// Heads above what was taken out, where they are left with nothing and were not there before.
std::string without_empty_heads(std::string text, TomlPath path, std::string_view before) {
  while (path.size() > 1) {
    path.pop_back();
    text = has_head(before, path) ? text : without_empty_table(text, path);
  }
  return text;
}

std::string first_string_in(std::string_view list) {
  const std::size_t begin = list.find('"');
  const std::size_t end = begin == std::string_view::npos ? begin : list.find('"', begin + 1);
  return end == std::string_view::npos ? std::string() : std::string(list.substr(begin + 1, end - begin - 1));
}

}  // namespace

Result<std::string> add_pieces(std::string_view text, const TomlPieces& pieces, const TomlValues& entry,
                               Standing standing) {
  TomlValues expected = TRY(read_toml(text));
  TomlValues old = expected;
  std::erase_if(old, [&pieces](const auto& value) { return !is_below(value.first, pieces.entry); });
  std::string edited(text);
  if (old != entry) {
    const bool is_value = entry.contains(pieces.entry) && old.contains(pieces.entry);
    edited = with_entry(is_value ? edited : without(edited, pieces.entry), pieces, entry);
    erase_entry(expected, pieces.entry);
    expected.insert(entry.begin(), entry.end());
    TRY(prove(edited, expected));
  }
  if (standing == Standing::by_default && !is_our_default(expected, pieces)) {
    edited = with_value(edited, pieces.default_name, toml_string(kRuntimeName));
    expected[pieces.default_name] = toml_string(kRuntimeName);
    TRY(prove(edited, expected));
  }
  return edited;
}

Result<std::string> remove_pieces(std::string_view text, const TomlPieces& pieces, Before before) {
  TomlValues expected = TRY(read_toml(text));
  const Result<TomlValues> was = read_toml(before.value_or(""));
  const std::string_view was_text = was ? before.value_or("") : "";
  std::string edited(text);
  if (has_entry(expected, pieces.entry)) {
    edited = without_empty_heads(without(edited, pieces.entry), pieces.entry, was_text);
    erase_entry(expected, pieces.entry);
    TRY(prove(edited, expected));
  }
  if (!is_our_default(expected, pieces)) {
    return edited;
  }
  const std::optional<std::string> old = value_in(was_text, pieces.default_name);
  const bool has_old = old && !is_our_default(*was, pieces);
  expected.erase(pieces.default_name);
  if (has_old) {
    edited = with_value(edited, pieces.default_name, *old);
    expected.emplace(pieces.default_name, was->at(pieces.default_name));
  } else {
    edited = without_empty_heads(without(edited, pieces.default_name), pieces.default_name, was_text);
  }
  TRY(prove(edited, expected));
  return edited;
}

Result<std::optional<Registered>> find_pieces(std::string_view text, const TomlPieces& pieces) {
  const TomlValues values = TRY(read_toml(text));
  const bool is_default = is_our_default(values, pieces);
  if (!has_entry(values, pieces.entry) && !is_default) {
    return std::nullopt;
  }
  Registered registered;
  registered.standing = is_default ? Standing::by_default : Standing::offered;
  if (const auto program = values.find(pieces.program); program != values.end()) {
    registered.program = first_string_in(program->second);
  }
  return registered;
}

TomlValues moved(const TomlValues& values, const TomlPath& from, const TomlPath& to) {
  TomlValues result;
  for (const auto& [path, value] : values) {
    if (!is_below(path, from)) {
      continue;
    }
    TomlPath place = to;
    place.insert(place.end(), path.begin() + std::ptrdiff_t(from.size()), path.end());
    result.emplace(std::move(place), value);
  }
  return result;
}

}  // namespace hf::engine
