// Usual: the runtime we become where nobody says otherwise. Bare (core/base/bare.h): it is looked for before there is a
// C library.
#pragma once

#include <span>
#include <string_view>

namespace hf::shim {

bool is_program(const char* path);  // and not ourselves

// "FOLDER/NAME" of the first folder of $PATH (or null), or else of the usual ones, that has such a program.
bool find_in_path(const char* path, std::string_view name, std::span<char> into);

// The same for the usual names; false: none is there.
bool find_usual(const char* path, std::span<char> into);

// Does this text of a config file name programs of its own?
bool names_programs(std::string_view text);

}  // namespace hf::shim
