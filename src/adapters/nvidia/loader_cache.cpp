#include "adapters/nvidia/loader_cache.h"

#include <cstdint>
#include <cstring>

namespace hf::nvidia {
namespace {

// glibc, sysdeps/generic/dl-cache.h: numbers are in host byte order, offsets count from the newer header.
constexpr std::string_view kOldMagic = "ld.so-1.7.0";
constexpr std::size_t kOldHeader = 16;
constexpr std::size_t kOldCount = 12;
constexpr std::size_t kOldEntry = 12;
constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
constexpr std::size_t kCount = 20;
constexpr std::size_t kHeader = 48;
constexpr std::size_t kEntry = 24;  // flags, name, path, system version, 8 bytes of hardware
constexpr std::size_t kAlignment = 8;

// The caller has checked that the number lies inside `bytes`.
std::uint32_t number_at(std::string_view bytes, std::size_t offset) {
  std::uint32_t number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

std::string_view skip_old_format(std::string_view bytes) {
  if (!bytes.starts_with(kOldMagic)) {
    return bytes;
  }
  if (bytes.size() < kOldHeader) {
    return {};
  }
  const std::size_t end = kOldHeader + (std::size_t(number_at(bytes, kOldCount)) * kOldEntry);
  const std::size_t start = (end + kAlignment - 1) / kAlignment * kAlignment;
  return start < bytes.size() ? bytes.substr(start) : std::string_view();
}

// "" where the offset lies outside, or the text is not terminated.
std::string_view text_at(std::string_view bytes, std::size_t offset) {
  if (offset >= bytes.size()) {
    return {};
  }
  const std::string_view rest = bytes.substr(offset);
  const std::size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

}  // namespace

std::vector<CachedLibrary> parse_loader_cache(std::string_view bytes) {
  const std::string_view cache = skip_old_format(bytes);
  if (cache.size() < kHeader || !cache.starts_with(kMagic)) {
    return {};
  }
  std::vector<CachedLibrary> libraries;
  const std::size_t count = number_at(cache, kCount);
  for (std::size_t i = 0, entry = kHeader; i < count && entry + kEntry <= cache.size(); ++i, entry += kEntry) {
    const CachedLibrary library{text_at(cache, number_at(cache, entry + 4)),
                                text_at(cache, number_at(cache, entry + 8))};
    if (!library.name.empty() && library.path.starts_with('/')) {
      libraries.push_back(library);
    }
  }
  return libraries;
}

}  // namespace hf::nvidia
