#include "core/base/shell.h"

#include <algorithm>
#include <utility>

namespace hf {
namespace {

constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kSpecial = "|&;<>()$`\\\"*?[]#~!{}\n\r";  // to a shell, outside single quotes

// One argument, of quoted and plain parts, from the start of the text; removes it there. Absent where it is not
// literal.
std::optional<std::string> take_argument(std::string_view& text) {
  std::string argument;
  while (!text.empty() && !kBlanks.contains(text.front())) {
    if (text.starts_with("\\'")) {  // between two quoted parts, as quoted_for_shell writes a quote
      argument += '\'';
      text.remove_prefix(2);
    } else if (text.front() == '\'') {
      const std::size_t end = text.find('\'', 1);
      if (end == std::string_view::npos) {
        return std::nullopt;
      }
      argument += text.substr(1, end - 1);
      text.remove_prefix(end + 1);
    } else if (kSpecial.contains(text.front())) {
      return std::nullopt;
    } else {
      argument += text.front();
      text.remove_prefix(1);
    }
  }
  return argument;
}

}  // namespace

std::string quoted_for_shell(const std::string& argument) {
  const bool plain = !argument.empty() && argument.find_first_not_of(
                                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                              "_-./:@=+,") == std::string::npos;
  if (plain) {
    return argument;
  }
  std::string quoted = "'";
  for (const char character : argument) {
    quoted += character == '\'' ? "'\\''" : std::string(1, character);
  }
  return quoted + "'";
}

std::string quoted_for_shell(const std::vector<std::string>& arguments) {
  std::string line;
  for (const std::string& argument : arguments) {
    line += (line.empty() ? "" : " ") + quoted_for_shell(argument);
  }
  return line;
}

std::optional<std::vector<std::string>> arguments_in(std::string_view command) {
  std::vector<std::string> arguments;
  while (true) {
    command.remove_prefix(std::min(command.find_first_not_of(kBlanks), command.size()));
    if (command.empty() || command.front() == '#') {
      return arguments;
    }
    std::optional<std::string> argument = take_argument(command);
    if (!argument) {
      return std::nullopt;
    }
    arguments.push_back(*std::move(argument));
  }
}

}  // namespace hf
