// Runtime: the OCI runtimes of this machine that could start a container for us, and an old one from afar.
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

// runc before 1.0.0: its update takes back every device that the container's config does not name.
bool loses_devices_at_update(const Runtime& runtime);

std::vector<Runtime> find_runtimes();  // in $PATH, runc first

// Debian 11's runc, unpacked into a folder, from wherever this machine has its packages. Fails where it cannot be had
// within the limit.
Result<Runtime> fetch_old_runc(const std::string& folder, std::chrono::milliseconds limit);

// "deb [signed-by=…] URI", without suite and components: of the machine's own Debian mirror, from a file of apt's in
// either of its two forms. Nothing where it names none.
std::optional<std::string> mirror_in_list(std::string_view text);
std::optional<std::string> mirror_in_stanzas(std::string_view text);

}  // namespace hf::demo
