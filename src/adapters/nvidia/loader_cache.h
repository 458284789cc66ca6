// LoaderCache: the list of libraries that ldconfig leaves for the dynamic loader, /etc/ld.so.cache.
#pragma once

#include <string_view>
#include <vector>

namespace hf::nvidia {

struct CachedLibrary {
  std::string_view name;  // "libcuda.so.1"
  std::string_view path;  // "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
};

// Of a file in glibc's newer format, by itself or behind the older one; the words point into `bytes`. Entries that lead
// out of the file are passed over, and of a file in no such format there are none.
std::vector<CachedLibrary> parse_loader_cache(std::string_view bytes);

}  // namespace hf::nvidia
