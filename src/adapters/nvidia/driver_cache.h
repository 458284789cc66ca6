// DriverCache: what was read of the driver's files, kept for the next container: finding them takes hundreds of system
// calls. It counts for one version of the driver, and as long as no directory of its files has changed.
#pragma once

#include <string>

#include "adapters/nvidia/files.h"
#include "core/base/result.h"
#include "kernel/files/host.h"

namespace hf::nvidia {

inline constexpr const char* kDriverCache = "/run/holdfast/driver-files";

struct CachedDriver {
  DriverFiles files;     // with the identities of its libraries
  std::string to_cache;  // the contents of a new cache; "" where it is current, or there can be none
};

// As read_driver_files, but from the cache where that is current.
Result<CachedDriver> read_cached_driver(const kernel::Host& host, const std::string& driver_root);

Result<void> write_driver_cache(const kernel::Host& host, const std::string& contents);

// One line per fact, fields separated by tabs. "" where a name has a tab or a line break.
std::string render_driver_files(const DriverFiles& driver);
// Fails where a line makes no sense: it is written by the same program, but may be of another version.
Result<DriverFiles> parse_driver_files(std::string_view text);

}  // namespace hf::nvidia
