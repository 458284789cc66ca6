// TextDiff: what changed between two texts, line by line, in the format that patch(1) accepts.
#pragma once

#include <string>
#include <string_view>

namespace hf::report {

struct FileTexts {
  std::string path;
  std::string_view before;
  std::string_view after;
};
// "" where both are the same. An empty text is shown as a missing file.
std::string render_diff(const FileTexts& file);

}  // namespace hf::report
