#include "adapters/oci/option.h"

#include <algorithm>
#include <array>

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

bool has_path_attached(std::string_view argument) {
  const bool has_short_option =
      argument.size() > 2 && argument[0] == '-' && (argument[1] == 'b' || argument[1] == 'f' || argument[1] == 'r');
  return has_short_option && (argument[2] == '/' || argument[2] == '.' || argument == "-r-");
}

std::optional<Option> parse_option(std::string_view argument) {
  if (argument.size() < 2 || argument[0] != '-') {
    return std::nullopt;
  }
  if (has_path_attached(argument)) {
    return Option{argument.substr(1, 1), argument.substr(2)};
  }
  argument.remove_prefix(argument[1] == '-' ? 2 : 1);
  const std::size_t equals = argument.find('=');
  if (equals == std::string_view::npos) {
    return Option{argument, std::nullopt};
  }
  return Option{argument.substr(0, equals), argument.substr(equals + 1)};
}

bool is_among(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

bool takes_next_argument(std::string_view global_option) { return is_among(global_option, kGlobalWithValue); }

Verb verb_of(std::string_view argument) {
  const auto* const named = std::ranges::find(kVerbs, argument, &NamedVerb::name);
  return named == kVerbs.end() ? Verb::other : named->verb;
}

}  // namespace hf::oci
