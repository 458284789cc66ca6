#include "adapters/nvidia/loader_cache.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/loader_cache.h"

namespace hf::nvidia {
namespace {

using test::make_loader_cache;

const std::vector<std::pair<std::string, std::string>> kLibraries = {
    {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"}, {"libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6"}};

std::string describe(std::string_view bytes) {
  std::string text;
  for (const CachedLibrary& library : parse_loader_cache(bytes)) {
    text += std::string(library.name) + "=" + std::string(library.path) + " ";
  }
  return text;
}

constexpr const char* kDescription =
    "libcuda.so.1=/usr/local/nvidia/lib64/libcuda.so.1 libc.so.6=/lib/x86_64-linux-gnu/libc.so.6 ";

TEST(LoaderCache, ListsLibrariesWithTheirPaths) { EXPECT_EQ(describe(make_loader_cache(kLibraries)), kDescription); }

TEST(LoaderCache, IsFoundAfterTheOlderFormat) {
  std::string old = "ld.so-1.7.0";
  old.resize(16);
  const std::uint32_t count = 3;
  std::memcpy(old.data() + 12, &count, sizeof(count));
  old.resize(16 + (3 * 12));
  old.resize((old.size() + 7) / 8 * 8);
  EXPECT_EQ(describe(old + make_loader_cache(kLibraries)), kDescription);
}

TEST(LoaderCache, ThatIsTruncatedIsReadSafely) {
  const std::string whole = make_loader_cache(kLibraries);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_LT(describe(std::string_view(whole).substr(0, size)).size(), std::string(kDescription).size()) << size;
  }
}

TEST(LoaderCache, SkipsEntriesWithOffsetsOutsideTheFile) {
  std::string bytes = make_loader_cache(kLibraries);
  const std::uint32_t beyond = 0xffffffff;
  std::memcpy(bytes.data() + 48 + 4, &beyond, sizeof(beyond));  // the first name
  EXPECT_EQ(describe(bytes), "libc.so.6=/lib/x86_64-linux-gnu/libc.so.6 ");
  std::memcpy(bytes.data() + 20, &beyond, sizeof(beyond));  // the count
  EXPECT_EQ(describe(bytes).find("libcuda"), std::string::npos);
  EXPECT_EQ(describe(""), "");
  EXPECT_EQ(describe("ld.so-1.7.0"), "");
  EXPECT_EQ(describe("\x7f"
                     "ELF"),
            "");
}

}  // namespace
}  // namespace hf::nvidia
