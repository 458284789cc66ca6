// LoaderCache: the list of libraries that ldconfig leaves for the dynamic loader of glibc, /etc/ld.so.cache.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::nvidia {

struct CachedLibrary {
  std::string_view name;             // "libcuda.so.1"
  std::string_view path;             // "/usr/lib/x86_64-linux-gnu/libcuda.so.1"; it may have ".."
  std::uint32_t flags = 0;           // the C library and the architecture, as in LibraryIdentity
  std::uint32_t system_version = 0;  // of the oldest kernel that it runs on; 0 for any
  std::uint64_t hardware = 0;        // what the processor must be able to do; 0 for nothing

  friend bool operator==(const CachedLibrary&, const CachedLibrary&) = default;
};

// Names and paths are views into the bytes that were parsed.
struct LoaderCache {
  std::vector<CachedLibrary> libraries;          // in the order in which the loader searches
  std::vector<std::string_view> hardware_names;  // of the glibc-hwcaps directories: `hardware` may have an index of it

  friend bool operator==(const LoaderCache&, const LoaderCache&) = default;
};

// Reads glibc's newer format, by itself or after a table in the older format. Fails where offsets lie outside of the
// file, for names that no library can have (with "/", ".." or control characters, or longer than a file's name), for
// paths that are relative, too long or have control characters, and for more than 64 Ki entries or 16 MiB of entries
// and names. Another format is not_supported.
Result<LoaderCache> parse_loader_cache(std::string_view bytes);

// Can the loader search it? Names must descend, as it compares them, and it must be able to compare them: they are
// ASCII, with 9 digits in a row at most.
bool is_ordered(const LoaderCache& cache);

// The newer format by itself, which every glibc since 2.2 reads.
std::string render_loader_cache(const LoaderCache& cache);

// The loader takes these libraries before all others of their names, the first ones first, unless others are made for
// this very processor. Those at the same path are replaced, and those for which `is_gone` is true of their path; it is
// asked about libraries of the same names only.
void put_first(LoaderCache& cache, const std::vector<CachedLibrary>& libraries,
               const std::function<bool(std::string_view path)>& is_gone);

}  // namespace hf::nvidia
