// TomlRegistration: what the engines whose config is TOML have in common: an entry of ours, and the name of a default.
#pragma once

#include <string>
#include <string_view>

#include "adapters/engine/registration.h"
#include "adapters/engine/toml_text.h"
#include "core/base/result.h"

namespace hf::engine {

struct TomlPieces {
  TomlPath entry;         // a table or a value, which is ours with all that lies in it
  TomlPath program;       // in it; a string, or a list that begins with one
  TomlPath default_name;  // ours where its value is our name
};

// The text with these values as the entry, instead of those that it has. The result is read again and proven to say
// what the text said, and that.
Result<std::string> add_pieces(std::string_view text, const TomlPieces& pieces, const TomlValues& entry,
                               Standing standing);
Result<std::string> remove_pieces(std::string_view text, const TomlPieces& pieces, Before before);
Result<std::optional<Registered>> find_pieces(std::string_view text, const TomlPieces& pieces);

// The values of a table, as those of another one.
TomlValues moved(const TomlValues& values, const TomlPath& from, const TomlPath& to);

}  // namespace hf::engine
