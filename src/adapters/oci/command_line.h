// CommandLine: the parts of a command line of runc or crun that matter for a container's devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hf::oci {

// Commands that do not change devices are `other`: they are passed to the runtime unchanged.
enum class Verb : std::uint8_t { other, create, run, restore, update, remove };

struct CommandLine {
  Verb verb = Verb::other;
  std::string container;  // "" where none is named
  std::string bundle = ".";
  std::string config = "config.json";  // below the bundle; crun has an option for another name
  std::string log;                     // --log, "" for standard error
  std::string log_format;
  // The file that the resources of an update are read from: "-" for standard input, "" where they are options.
  std::string resources;
  std::size_t resources_at = 0;  // index of the argument with the option; 0: none
  bool asks_for_help = false;
  bool ends_with_runtime = false;  // run and restore delete the container when they exit, without --detach and --keep
};

// Takes the arguments after the program's name. An argument is a command only in a command's position: a container may
// be named "create".
CommandLine parse_command_line(const std::vector<std::string>& arguments);

// The same arguments with another file to read the resources from.
std::vector<std::string> with_resources(std::vector<std::string> arguments, const CommandLine& line,
                                        const std::string& file);

}  // namespace hf::oci
