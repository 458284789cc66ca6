#include "adapters/oci/option.h"

#include <algorithm>
#include <array>

#include "core/base/bare.h"

namespace hf::oci {
namespace {

constexpr std::array<std::string_view, 7> kGlobalWithValue = {"log",      "log-format", "log-level",     "root",
                                                              "rootless", "criu",       "cgroup-manager"};

struct NamedVerb {
  std::string_view name;
  Verb verb;
};
constexpr std::array<NamedVerb, 5> kVerbs = {{{"create", Verb::create},
                                              {"run", Verb::run},
                                              {"restore", Verb::restore},
                                              {"update", Verb::update},
                                              {"delete", Verb::remove}}};

}  // namespace

bool has_path_attached(std::string_view word) {
  const bool has_letter = word.size() > 2 && word[0] == '-' && (word[1] == 'b' || word[1] == 'f' || word[1] == 'r');
  return has_letter && (word[2] == '/' || word[2] == '.' || bare::is_same(word, "-r-"));
}

std::optional<Option> option_of(std::string_view word) {
  if (word.size() < 2 || word[0] != '-') {
    return std::nullopt;
  }
  if (has_path_attached(word)) {
    return Option{bare::before(bare::from(word, 1), 1), bare::from(word, 2)};
  }
  word = bare::from(word, word[1] == '-' ? 2 : 1);
  const std::size_t equals = bare::find(word, '=');
  if (equals == word.size()) {
    return Option{word, std::nullopt};
  }
  return Option{bare::before(word, equals), bare::from(word, equals + 1)};
}

bool is_among(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::any_of(names, [name](std::string_view one) { return bare::is_same(one, name); });
}

bool takes_next_word(std::string_view global_option) { return is_among(global_option, kGlobalWithValue); }

Verb verb_of(std::string_view word) {
  for (const NamedVerb& named : kVerbs) {
    if (bare::is_same(named.name, word)) {
      return named.verb;
    }
  }
  return Verb::other;
}

bool is_passed_on(std::span<const char* const> words) {
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string_view word = bare::text_of(words[at]);
    const std::optional<Option> option = option_of(word);
    if (!option) {
      return verb_of(word) == Verb::other && !bare::is_same(word, "hook");
    }
    at += !option->value && takes_next_word(option->name) ? 1 : 0;
  }
  return true;
}

}  // namespace hf::oci
