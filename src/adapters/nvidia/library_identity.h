// LibraryIdentity: by which name programs ask the dynamic loader for a library, and which programs can load it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernel/files/fd.h"

namespace hf::nvidia {

struct LibraryIdentity {
  std::string name;         // DT_SONAME; "" where it has none
  std::uint32_t flags = 0;  // as the loader's cache has them

  friend bool operator==(const LibraryIdentity&, const LibraryIdentity&) = default;
};

// Absent where the file is no library of an architecture that is known here. Reads a few KiB, whatever the file says.
std::optional<LibraryIdentity> read_library_identity(const kernel::Fd& file);

}  // namespace hf::nvidia
