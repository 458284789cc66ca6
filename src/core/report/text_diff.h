// TextDiff: what changed between two texts, line by line, in the form that patch(1) takes.
#pragma once

#include <string>
#include <string_view>

namespace hf::report {

struct FileTexts {
  std::string path;
  std::string_view before;
  std::string_view after;
};
// "" where both are the same. A text that is empty is shown as a file that is not there.
std::string render_diff(const FileTexts& file);

}  // namespace hf::report
