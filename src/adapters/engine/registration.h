// Registration: holdfast's runtime in the config file of a container engine. Each editor changes only what it is asked
// to change: every other byte of the text stays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::engine {

inline constexpr const char* kRuntimeName = "holdfast";

enum class RuntimeRole : std::uint8_t { offered, by_default };

// The file before holdfast was registered in it; absent where that is not known, or where there was no file.
using Before = std::optional<std::string_view>;

struct Registration {
  std::string program;  // an absolute path
  RuntimeRole role = RuntimeRole::offered;
  bool passes_annotations = false;  // containerd: CDI names in annotations of pods and containers reach the runtime
  Before before = std::nullopt;     // `offered` restores its default runtime, where holdfast is the default
};

// What a text has of holdfast's registration.
struct Registered {
  std::optional<std::string> program;  // absent: the name is there without a program
  RuntimeRole role = RuntimeRole::offered;
  bool passes_annotations = false;
};

struct Edited {
  std::string text;
  std::vector<std::string> notes;  // what may keep the registration from having an effect
};

// Accepts only paths that JSON and TOML can hold without escapes.
Result<void> check_program_path(std::string_view path);

}  // namespace hf::engine
