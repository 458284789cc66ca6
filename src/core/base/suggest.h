// Suggest: what a mistyped name was probably meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hf {

// The candidate that differs least, if it differs little: by one letter in four, at least one. "" where there is none.
std::string nearest(std::string_view text, const std::vector<std::string>& candidates);

// "; did you mean doctor?", or "" where nothing is near.
std::string did_you_mean(std::string_view text, const std::vector<std::string>& candidates);

// The same, or where nothing is near all of them: "; there are ps, doctor".
std::string suggest(std::string_view text, const std::vector<std::string>& candidates);

}  // namespace hf
