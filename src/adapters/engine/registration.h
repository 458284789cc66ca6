// Registration: holdfast's runtime in the config file of a container engine. Each editor changes a text and nothing but
// what it is asked for: every other byte stays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::engine {

inline constexpr const char* kRuntimeName = "holdfast";

enum class Standing : std::uint8_t { offered, by_default };

struct Registration {
  std::string program;  // an absolute path
  Standing standing = Standing::offered;
};

// What a text has of ours.
struct Registered {
  std::optional<std::string> program;  // absent: the name stands there without a program
  Standing standing = Standing::offered;
};

struct Edited {
  std::string text;
  std::vector<std::string> notes;  // what may keep it from having an effect
};

// As the file was before it had anything of ours; absent where that is not known, or where there was none.
using Before = std::optional<std::string_view>;

// A path that means the same to every reader of JSON and TOML, without an escape.
Result<void> check_program_path(std::string_view path);

// Where a byte of a text is, in an editor's words: "line 3, column 7".
std::string place_in(std::string_view text, std::size_t offset);

}  // namespace hf::engine
