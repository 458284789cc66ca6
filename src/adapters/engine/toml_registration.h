// TomlRegistration: what the engines with a TOML config have in common: an entry for holdfast, and the name of the
// default runtime.
#pragma once

#include <string>
#include <string_view>

#include "adapters/document/toml.h"
#include "adapters/engine/registration.h"
#include "core/base/result.h"

namespace hf::engine {

using document::TomlPath;
using document::TomlValues;

struct RegistrationPaths {
  TomlPath entry;         // holdfast's table or value
  TomlPath program;       // in the entry; a string, or a list that begins with one
  TomlPath default_name;  // of the engine's default runtime
};

// The text with these values as holdfast's entry, in place of an older one. The result is parsed again and checked: it
// must differ from the text in nothing else.
Result<std::string> add_registration(std::string_view text, const RegistrationPaths& paths, const TomlValues& entry,
                                     const Registration& registration);
Result<std::string> remove_registration(std::string_view text, const RegistrationPaths& paths, Before before);
Result<std::optional<Registered>> find_registration(std::string_view text, const RegistrationPaths& paths);

// The values of the table `from`, with paths in the table `to`.
TomlValues rebased(const TomlValues& values, const TomlPath& from, const TomlPath& to);

}  // namespace hf::engine
