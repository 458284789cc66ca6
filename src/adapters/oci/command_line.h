// CommandLine: what runc and crun are told to do, as far as it decides what becomes of a container's devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hf::oci {

// Everything else is none of our business: it is handed on as it is.
enum class Verb : std::uint8_t { other, create, run, restore, update, remove };

struct CommandLine {
  Verb verb = Verb::other;
  std::string container;  // "" where none is named
  std::string bundle = ".";
  std::string config = "config.json";  // below the bundle; crun can be told another name
  std::string log;                     // --log, "" for standard error
  std::string log_format;
  // Where the resources of an update are read from: "-" for standard input, "" where they are words.
  std::string resources;
  std::size_t resources_at = 0;  // the word that names it; 0: none
  bool asks_for_help = false;
  bool ends_with_runtime = false;  // run and restore delete a container in the end, unless they are told otherwise
};

// The words after the program's name. A word is a verb only where a verb can stand: a container may be called "create".
CommandLine parse_command_line(const std::vector<std::string>& words);

// Is it none of our business? Bare (core/base/bare.h): most calls are not, and take no longer than they must.
bool is_passed_on(std::span<const char* const> words);

// The same words with another file to read the resources from.
std::vector<std::string> with_resources(std::vector<std::string> words, const CommandLine& line,
                                        const std::string& file);

}  // namespace hf::oci
