// Mount: a line of /proc/PID/mountinfo.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hf::container {

struct Mount {
  std::string point;
  std::string root;  // the part of the file system that is visible there
  std::string type;
  std::string source;
};

std::vector<Mount> parse_mountinfo(std::string_view text);

// Returns the mount that a path is on: the last one that covers it. Null only where there is no root mount.
const Mount* mount_over(const std::vector<Mount>& mounts, std::string_view path);

std::string unescape_mountinfo(std::string_view text);  // spaces and backslashes are written as octal escapes (\040)

}  // namespace hf::container
