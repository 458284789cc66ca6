// Loader caches of images: what is read is written unchanged, and what is added keeps the order in which the loader
// searches.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "adapters/nvidia/loader_cache.h"
#include "check.h"

namespace {

using namespace hf;

void check_adding(const nvidia::LoaderCache& cache) {
  const std::vector<nvidia::CachedLibrary> added = {{"libcuda.so.1", "/usr/lib/libcuda.so.1", 0x0303},
                                                    {"libcuda.so.1", "/usr/lib32/libcuda.so.1", 0x0003},
                                                    {"libnvidia-ml.so.1", "/usr/lib/libnvidia-ml.so.1", 0x0303}};
  const auto is_gone = [](std::string_view path) { return path.size() % 2 == 0; };
  nvidia::LoaderCache once = cache;
  put_first(once, added, is_gone);
  check(!is_ordered(cache) || is_ordered(once), "the order is kept");
  const std::string bytes = render_loader_cache(once);
  const Result<nvidia::LoaderCache> read = nvidia::parse_loader_cache(bytes);
  check(read && *read == once, "what was added is read again");
  for (const nvidia::CachedLibrary& library : added) {
    check(std::ranges::find(once.libraries, library) != once.libraries.end(), "it is there");
  }
  nvidia::LoaderCache twice = once;
  put_first(twice, added, [](std::string_view) { return false; });
  check(!is_ordered(cache) || twice == once, "twice is the same as once");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Result<nvidia::LoaderCache> cache = nvidia::parse_loader_cache(bytes);
  if (!cache) {
    check(!cache.error().message.empty(), "an error has a message");
    return 0;
  }
  for (const nvidia::CachedLibrary& library : cache->libraries) {
    check(library.path.starts_with('/') && !library.name.empty(), "a library has a name and an absolute path");
    check(library.name.find('/') == std::string_view::npos, "a name is no path");
  }
  const std::string written = render_loader_cache(*cache);
  // 16 MiB of entries and names, and what does not grow with their number: the header and names of processors.
  check(written.size() <= (std::size_t(16) << 20U) + (std::size_t(64) << 10U), "it does not grow without a limit");
  const Result<nvidia::LoaderCache> again = nvidia::parse_loader_cache(written);
  check(again && *again == *cache, "a round trip changes nothing");
  check_adding(*cache);
  return 0;
}
