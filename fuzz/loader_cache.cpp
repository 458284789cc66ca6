// The loader's cache: every name and path lies inside the file, and paths are absolute.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "adapters/nvidia/loader_cache.h"
#include "check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto lies_inside = [bytes](std::string_view text) {
    return text.data() >= bytes.data() && text.data() + text.size() < bytes.data() + bytes.size();
  };
  for (const hf::nvidia::CachedLibrary& library : hf::nvidia::parse_loader_cache(bytes)) {
    check(lies_inside(library.name) && lies_inside(library.path), "names and paths lie inside the file and end there");
    check(!library.name.empty() && library.path.starts_with('/'), "a library has a name and a path");
  }
  return 0;
}
