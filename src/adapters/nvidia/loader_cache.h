// LoaderCache: the list of libraries that ldconfig leaves for the dynamic loader, /etc/ld.so.cache.
#pragma once

#include <string_view>
#include <vector>

namespace hf::nvidia {

struct CachedLibrary {
  std::string_view name;  // "libcuda.so.1"
  std::string_view path;  // "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
};

// Reads glibc's newer format, by itself or after a table in the older format; names and paths are views into `bytes`.
// Entries whose offsets lie outside the file are skipped; a file in any other format has no entries.
std::vector<CachedLibrary> parse_loader_cache(std::string_view bytes);

}  // namespace hf::nvidia
