// Utf8: others' bytes as text that every reader takes, and no longer than it may be.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hf::report {

std::string as_utf8(std::string_view bytes);                        // what is none becomes U+FFFD
std::string cut_to(std::string_view text, std::size_t most_bytes);  // ends in "…" where something was left out

// A text as a word of JSON, in its quotes.
std::string json_word(std::string_view text);

}  // namespace hf::report
