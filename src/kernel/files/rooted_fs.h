// RootedFs: reads files below one directory as a process would that has this directory as its root, so that symlinks do
// not lead out of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "kernel/files/fd.h"

namespace hf::kernel {

enum class EntryKind : std::uint8_t { file, directory, link, socket, other };

struct Entry {
  std::string name;
  EntryKind kind = EntryKind::other;
};

// What a path resolves to.
struct Found {
  std::string path;  // without symlinks, from the root
  EntryKind kind = EntryKind::other;
  std::uint32_t uid = 0;
};
std::optional<Found> find_in(int root, const std::string& path);

Result<Fd> open_directory_in(int root, const std::string& path);
// Opens a regular file for reading. Anything else is not opened at all: opening a device may do something. Does not
// wait where another process holds a lease on the file: that may be a container that shares it.
enum class Mounts : std::uint8_t { all, of_root };  // of_root: cross_device_link where something else is mounted
Result<Fd> open_file_in(int root, const std::string& path, Mounts mounts = Mounts::all);
// The same for a name in a directory, on its mount. Fails with too_many_symbolic_link_levels for a symlink.
Result<Fd> open_file_at(int directory, const std::string& name);

// The entries that `wanted` accepts, sorted by name; empty where the directory cannot be read. `wanted` is called
// before a name is copied, because a directory of libraries has thousands of names.
using WantedEntry = std::function<bool(std::string_view name, EntryKind kind)>;
std::vector<Entry> list_entries(int directory, const WantedEntry& wanted);

std::string read_link(int directory, const std::string& name);  // "" where it is not a symlink
// The first bytes of a regular file, at most `size`; "" where there is none.
std::string read_start_in(int root, const std::string& path, std::size_t size, Mounts mounts = Mounts::all);

}  // namespace hf::kernel
