#include "programs/console/usage.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/base/suggest.h"
#include "core/base/text.h"
#include "programs/console/exit_code.h"

namespace hf::programs {
namespace {

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> long_options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  const std::vector<const CLI::App*> found =
      app.get_subcommands([&name](const CLI::App* one) { return one->check_name(name); });
  return found.empty() ? nullptr : found.front();
}

bool takes_arguments(const CLI::App& app) {
  return std::ranges::any_of(app.get_options(), [](const CLI::Option* one) { return one->get_positional(); });
}

bool is_option(const std::string& argument) { return argument.size() > 1 && argument.front() == '-'; }

// "--output" of "--output=json", "-o" of "-ojson".
std::string name_of_option(const std::string& argument) {
  constexpr std::size_t kShort = 2;
  return argument.starts_with("--") ? argument.substr(0, argument.find('=')) : argument.substr(0, kShort);
}

// How many of the arguments after an option are its values.
std::size_t values_after(const CLI::Option& option, bool has_value, std::span<const std::string> after) {
  if (option.get_items_expected_max() == 0) {
    return 0;
  }
  if (!option.get_allow_extra_args()) {
    return has_value ? 0 : 1;
  }
  return std::size_t(std::ranges::find_if(after, is_option) - after.begin());
}

// The command that the arguments lead to, and the first of them that it does not know.
struct Reached {
  const CLI::App* command = nullptr;
  std::string path;  // "holdfast cpu plan"
  std::string unknown;
};

Reached reach(const CLI::App& app, const std::vector<std::string>& arguments) {
  Reached reached{&app, app.get_name(), ""};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      break;
    }
    if (is_option(argument)) {
      const std::string name = name_of_option(argument);
      const CLI::Option* const option = reached.command->get_option_no_throw(name);
      if (option == nullptr) {
        reached.unknown = argument.substr(0, argument.find('='));
        return reached;
      }
      i += values_after(*option, name.size() != argument.size(), std::span(arguments).subspan(i + 1));
    } else if (const CLI::App* const next = find_command(*reached.command, argument)) {
      reached.command = next;
      reached.path += " " + argument;
    } else if (!takes_arguments(*reached.command)) {
      reached.unknown = argument;
      return reached;
    }
  }
  return reached;
}

// Every letter differs little from every other, so a short option is near none.
std::string meant_option(const Reached& reached) {
  constexpr std::size_t kShort = 2;
  const std::vector<std::string> options = long_options_of(*reached.command);
  if (!reached.unknown.starts_with('-')) {  // "version"
    const bool is_option = std::ranges::find(options, "--" + reached.unknown) != options.end();
    return is_option ? "; did you mean --" + reached.unknown + "?" : "";
  }
  return reached.unknown.size() <= kShort ? "" : did_you_mean(reached.unknown, options);
}

std::string about_unknown(const Reached& reached) {
  if (reached.unknown.starts_with('-')) {
    return "no option " + quote(reached.unknown) + meant_option(reached);
  }
  const std::vector<std::string> commands = commands_of(*reached.command);
  if (commands.empty()) {
    return "unexpected argument " + quote(reached.unknown) + meant_option(reached);
  }
  const std::string near = did_you_mean(reached.unknown, commands);
  const std::string meant = near.empty() ? meant_option(reached) : near;
  return "no command " + quote(reached.unknown) + (meant.empty() ? "; there are " + join(commands, ", ") : meant);
}

std::string explain_usage(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& arguments) {
  const Reached reached = reach(app, arguments);
  const std::vector<std::string> commands = commands_of(*reached.command);
  const bool lacks_command = reached.unknown.empty() && !commands.empty() && !takes_arguments(*reached.command);
  const std::string text = lacks_command             ? "a command is missing; there are " + join(commands, ", ")
                           : reached.unknown.empty() ? error.what()
                                                     : about_unknown(reached);
  return printable(text) + " (see " + reached.path + " --help)";
}

// "holdfast" of "kubectl holdfast": what every message of a program begins with.
std::string program_of(const CLI::App& app) { return app.get_name().substr(app.get_name().rfind(' ') + 1); }

}  // namespace

int answer_unparsed(const CLI::App& app, const CLI::ParseError& error, std::span<char* const> argv) {
  const std::vector<std::string> arguments(argv.begin() + (argv.empty() ? 0 : 1), argv.end());
  const Reached reached = reach(app, arguments);
  const bool has_command = reached.unknown.empty() || commands_of(*reached.command).empty();
  if (error.get_exit_code() == 0 && has_command) {  // --help and --version
    return app.exit(error);
  }
  std::cerr << program_of(app) << ": " << explain_usage(app, error, arguments) << '\n';
  return kCannotTell;
}

int run_command_line(CLI::App& app, std::span<char* const> argv, const std::string& missing, const int& status) {
  try {
    app.parse(int(argv.size()), argv.data());
    if (app.get_subcommands().empty()) {
      std::cerr << "holdfast: " << missing << '\n';
      return kCannotTell;
    }
  } catch (const CLI::ParseError& error) {
    return answer_unparsed(app, error, argv);
  } catch (const std::exception& error) {
    std::cerr << "holdfast: " << error.what() << '\n';
    return kCannotTell;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::cerr << "holdfast: cannot write to standard output\n";
    return kCannotTell;
  }
  return status;
}

std::string list_commands(const CLI::App& app) {
  std::vector<std::string> groups;
  std::size_t width = 0;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    if (std::ranges::find(groups, command->get_group()) == groups.end()) {
      groups.push_back(command->get_group());
    }
    width = std::max(width, command->get_name().size());
  }
  std::string text;
  for (const std::string& group : groups) {
    text += (text.empty() ? "" : "\n") + group + ":\n";
    for (const CLI::App* command :
         app.get_subcommands([&](const CLI::App* one) { return one->get_group() == group; })) {
      text += "  " + command->get_name() + std::string(width + 2 - command->get_name().size(), ' ') +
              command->get_description() + "\n";
    }
  }
  return text;
}

}  // namespace hf::programs
