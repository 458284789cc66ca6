// Runtime: the OCI runtimes of this machine that can start a container, and an old runc that is downloaded.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::demo {

struct Runtime {
  std::string name;  // "runc", "crun"
  std::string program;
  std::string version;
};

// runc before 1.0.0: its update denies every device that the container's config does not name.
bool loses_devices_at_update(const Runtime& runtime);

std::vector<Runtime> find_runtimes();  // in $PATH, runc first

// Downloads Debian 11's runc from this machine's package mirror, and unpacks it into a directory. Fails where that
// takes longer than the limit.
Result<Runtime> fetch_old_runc(const std::string& directory, std::chrono::milliseconds limit);

// The Debian mirror that a file of apt names, as "deb [signed-by=…] URI" without suite and components. apt has two file
// formats: one-line lists and stanzas.
std::optional<std::string> mirror_in_list(std::string_view text);
std::optional<std::string> mirror_in_stanzas(std::string_view text);

}  // namespace hf::demo
