#include "core/container/cgroup/mount.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/base/text.h"

namespace hf::container {
namespace {

bool is_at_or_below(std::string_view path, std::string_view point) {
  return path.starts_with(point) && (path.size() == point.size() || point == "/" || path[point.size()] == '/');
}

}  // namespace

std::string unescape_mountinfo(std::string_view text) {
  std::string path;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::optional<std::uint8_t> code =
        text[i] == '\\' ? parse_number<std::uint8_t>(text.substr(i + 1, 3), 8) : std::nullopt;
    path += code ? char(*code) : text[i];
    i += code ? 3 : 0;
  }
  return path;
}

std::vector<Mount> parse_mountinfo(std::string_view text) {
  std::vector<Mount> mounts;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> fields = split_fields(line);
    const auto dash = std::ranges::find(fields, "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 3) {
      continue;
    }
    mounts.push_back({unescape_mountinfo(fields[4]), unescape_mountinfo(fields[3]), std::string(dash[1]),
                      unescape_mountinfo(dash[2])});
  }
  return mounts;
}

const Mount* mount_over(const std::vector<Mount>& mounts, std::string_view path) {
  // The kernel lists mounts in the order of their creation: a later one covers everything at or below its mount point.
  const Mount* found = nullptr;
  for (const Mount& mount : mounts) {
    found = is_at_or_below(path, mount.point) ? &mount : found;
  }
  return found;
}

}  // namespace hf::container
