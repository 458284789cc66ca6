// Tree: a file system below one folder, looked at as somebody would whose root that folder is: links lead nowhere else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "kernel/fd.h"

namespace hf::kernel {

enum class EntryKind : std::uint8_t { file, folder, link, socket, other };

struct Entry {
  std::string name;
  EntryKind kind = EntryKind::other;
};

// What a path of the tree leads to in the end.
struct Found {
  std::string path;  // without links, from the tree's root
  EntryKind kind = EntryKind::other;
  std::uint32_t uid = 0;
};
std::optional<Found> find_in(int root, const std::string& path);

Result<Fd> open_folder_in(int root, const std::string& path);

// The entries whose names are wanted, in the order of the names; none where the folder cannot be read. Names are asked
// about before they are copied: a folder of libraries has thousands.
using WantedEntry = std::function<bool(std::string_view name, EntryKind kind)>;
std::vector<Entry> list_entries(int folder, const WantedEntry& wanted);

std::string read_link(int folder, const std::string& name);  // "" where it is none
// The first bytes of an ordinary file, at most `size`; "" where there is none.
std::string read_start_in(int root, const std::string& path, std::size_t size);

}  // namespace hf::kernel
