// Completion: what may come next on an unfinished command line, read from the commands themselves, so that it never
// goes out of date. The scripts in packaging/completion ask for it on every TAB.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include "adapters/config/config.h"
#include "commands.h"
#include "core/base/text.h"
#include "core/container/container.h"
#include "host/census.h"
#include "kernel/files/host.h"

namespace hf::programs {
namespace {

struct Candidate {
  std::string text;
  std::string description;
};

// The place that the words before the last one lead to.
struct Place {
  const CLI::App* command = nullptr;
  const CLI::Option* value_of = nullptr;  // the option whose value comes next
  std::size_t positionals = 0;
};

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

const CLI::App* subcommand_of(const CLI::App& command, const std::string& word) {
  const auto found =
      command.get_subcommands([&word](const CLI::App* subcommand) { return subcommand->get_name() == word; });
  return found.empty() ? nullptr : found.front();
}

Place find_place(const CLI::App& app, const std::vector<std::string>& words) {
  Place place{.command = &app};
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (place.value_of != nullptr) {
      place.value_of = nullptr;
    } else if (words[i].starts_with('-')) {
      const CLI::Option* option = place.command->get_option_no_throw(words[i]);
      place.value_of = option != nullptr && takes_value(*option) ? option : nullptr;
    } else if (const CLI::App* subcommand = subcommand_of(*place.command, words[i]);
               subcommand != nullptr && place.positionals == 0) {
      place.command = subcommand;
    } else {
      ++place.positionals;
    }
  }
  return place;
}

// CLI11 knows the values that an option may have only as a part of its type: "TEXT:{text,json}".
std::vector<Candidate> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t start = type.find('{');
  const std::size_t end = type.find('}');
  std::vector<Candidate> values;
  if (start == std::string::npos || end == std::string::npos || end < start) {
    return values;
  }
  for (const std::string_view value : split(std::string_view(type).substr(start + 1, end - start - 1), ',')) {
    values.push_back({std::string(value), ""});
  }
  return values;
}

// A shell inserts a candidate as it is. Names are chosen by users of containers, so what a shell could read as
// anything but a word is left out.
bool is_plain_word(std::string_view name) {
  constexpr std::string_view kPlain = "-._/@+";
  return !name.empty() && name.front() != '-' && std::ranges::all_of(name, [kPlain](char character) {
    const bool is_letter = (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z');
    return is_letter || (character >= '0' && character <= '9') || kPlain.contains(character);
  });
}

std::vector<Candidate> running_containers() {
  std::vector<Candidate> containers;
  const Result<kernel::Host> host = kernel::open_host();
  if (!host || ::geteuid() != 0) {
    return containers;  // others cannot read what names a container has
  }
  const Result<host::Census> census = host::take_census(*host, config::read_config(*host).value_or(config::Config()));
  if (!census) {
    return containers;
  }
  for (const container::Container& container : census->containers()) {
    const std::string title = title_of(container);
    if (!container.is_sandbox && is_plain_word(title)) {
      containers.push_back({title, container.engine.value_or("")});
    }
  }
  return containers;
}

std::vector<Candidate> arguments_of(const Place& place) {
  std::vector<const CLI::Option*> positionals =
      place.command->get_options([](const CLI::Option* option) { return option->get_positional(); });
  if (positionals.empty()) {
    return {};
  }
  const CLI::Option& option = *positionals[std::min(place.positionals, positionals.size() - 1)];
  if (place.positionals >= positionals.size() && option.get_items_expected_max() == 1) {
    return {};
  }
  const std::string name = option.get_name(true);
  const bool is_container = name == "CONTAINER" || name == "TARGET" || name == "A" || name == "B";
  return is_container ? running_containers() : values_of(option);
}

std::vector<Candidate> options_of(const CLI::App& command) {
  std::vector<Candidate> options;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      options.push_back({"--" + name, option->get_description()});
    }
  }
  return options;
}

std::vector<Candidate> candidates_for(const CLI::App& app, const std::vector<std::string>& words) {
  const Place place = find_place(app, words);
  if (place.value_of != nullptr) {
    return values_of(*place.value_of);
  }
  if (words.back().starts_with('-')) {
    return options_of(*place.command);
  }
  std::vector<Candidate> candidates = arguments_of(place);
  if (place.positionals == 0) {
    // Those without a group are for holdfast's own use.
    for (const CLI::App* subcommand :
         place.command->get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); })) {
      candidates.push_back({subcommand->get_name(), subcommand->get_description()});
    }
  }
  return candidates;
}

}  // namespace

void print_completions(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) {
    return;
  }
  for (const Candidate& candidate : candidates_for(app, words)) {
    if (candidate.text.starts_with(words.back())) {
      std::printf("%s\t%s\n", candidate.text.c_str(), printable(candidate.description).c_str());
    }
  }
}

}  // namespace hf::programs
