// Mount: a line of /proc/PID/mountinfo.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hf::container {

struct Mount {
  std::string point;
  std::string root;     // which part of the file system is seen there
  std::string options;  // of this mount: "rw,nosuid,nodev"
  std::string type;
  std::string source;

  [[nodiscard]] bool has_option(std::string_view option) const;
};

std::vector<Mount> parse_mountinfo(std::string_view text);

// The mount a path lies on: the last one over it. Absent only where there is no root mount.
const Mount* mount_over(const std::vector<Mount>& mounts, std::string_view path);

std::string unescape_mountinfo(std::string_view text);  // blanks and backslashes are written as \040 and the like

}  // namespace hf::container
