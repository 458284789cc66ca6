// LoaderCache: builds an /etc/ld.so.cache in glibc's newer format from a table.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace hf::test {

inline std::string make_loader_cache(const std::vector<std::pair<std::string, std::string>>& libraries) {
  constexpr std::size_t kHeader = 48;
  constexpr std::size_t kEntry = 24;
  std::string bytes = "glibc-ld.so.cache1.1";
  bytes.resize(kHeader + (libraries.size() * kEntry));
  const auto put = [&bytes](std::size_t offset, std::size_t number) {
    const auto value = std::uint32_t(number);
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
  };
  put(20, libraries.size());
  std::size_t entry = kHeader;
  for (const auto& [name, path] : libraries) {
    put(entry, 0x0303);  // glibc 2, x86-64
    put(entry + 4, bytes.size());
    bytes += name + '\0';
    put(entry + 8, bytes.size());
    bytes += path + '\0';
    entry += kEntry;
  }
  return bytes;
}

}  // namespace hf::test
