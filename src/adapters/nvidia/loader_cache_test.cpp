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

constexpr std::uint32_t kNative = 0x0303;
constexpr std::uint32_t kOther = 0x0003;  // 32 bits
constexpr std::uint64_t kNamedHardware = std::uint64_t(1) << 62U;

const std::vector<std::pair<std::string, std::string>> kLibraries = {
    {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"}, {"libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6"}};

std::string describe(const LoaderCache& cache) {
  std::string text;
  for (const CachedLibrary& library : cache.libraries) {
    text += std::string(library.name) + "=" + std::string(library.path) + " ";
  }
  return text;
}

std::string describe(std::string_view bytes) { return describe(parse_loader_cache(bytes).value_or(LoaderCache())); }

constexpr const char* kDescription =
    "libcuda.so.1=/usr/local/nvidia/lib64/libcuda.so.1 libc.so.6=/lib/x86_64-linux-gnu/libc.so.6 ";

bool is_never_gone(std::string_view) { return false; }

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

TEST(LoaderCache, ThatIsTruncatedIsRefused) {
  const std::string whole = make_loader_cache(kLibraries);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(parse_loader_cache(std::string_view(whole).substr(0, size))) << size;
  }
}

TEST(LoaderCache, WithOffsetsOutsideTheFileIsRefused) {
  const std::uint32_t beyond = 0xffffffff;
  for (const std::size_t offset : {20U, 48U + 4U, 48U + 8U, 32U}) {  // the count, a name, a path, the extension
    std::string bytes = make_loader_cache(kLibraries);
    std::memcpy(bytes.data() + offset, &beyond, sizeof(beyond));
    EXPECT_FALSE(parse_loader_cache(bytes)) << offset;
  }
}

TEST(LoaderCache, OfAnotherFormatIsToldApart) {
  for (const char* text : {"", "ld.so-1.7.0",
                           "\x7f"
                           "ELF",
                           "glibc-ld.so.cache2.0"}) {
    const Result<LoaderCache> cache = parse_loader_cache(text);
    ASSERT_FALSE(cache) << text;
    EXPECT_EQ(cache.error().code, std::errc::not_supported) << text;
  }
}

TEST(LoaderCache, WithImpossibleNamesIsRefused) {
  EXPECT_TRUE(parse_loader_cache(make_loader_cache({{"lib my.so", "/usr/a b/lib my.so"}})));
  for (const auto& [name, path] :
       {std::pair("../../proc/1/root/x", "/usr/lib/x"), std::pair("a/b", "/usr/lib/b"),
        std::pair("line\nline", "/usr/lib/x"), std::pair("..", "/usr/lib/x"), std::pair("lib..so", "/usr/lib/x"),
        std::pair("libx.so", "/usr/\x1b[2J/x"), std::pair("libx.so", "usr/lib/libx.so")}) {
    const Result<LoaderCache> cache = parse_loader_cache(make_loader_cache({{name, path}}));
    ASSERT_FALSE(cache) << name << " " << path;
    EXPECT_EQ(cache.error().code, std::errc::invalid_argument);
  }
}

// ldconfig copies the directory "/usr/local/bin/../lib64" of an ld.so.conf unchanged.
TEST(LoaderCache, KeepsPathsWithDotsAsTheyAre) {
  EXPECT_EQ(describe(make_loader_cache({{"libx.so", "/usr/local/bin/../lib64/libx.so"}, {"liba.so", "/a..b/liba.so"}})),
            "libx.so=/usr/local/bin/../lib64/libx.so liba.so=/a..b/liba.so ");
}

TEST(LoaderCache, WithNamesLongerThanOfAFileIsRefused) {
  const auto is_read = [](std::size_t name, std::size_t path) {
    return bool(parse_loader_cache(make_loader_cache({{std::string(name, 'l'), "/" + std::string(path - 1, 'p')}})));
  };
  EXPECT_TRUE(is_read(255, 4095));
  EXPECT_FALSE(is_read(256, 4095));
  EXPECT_FALSE(is_read(255, 4096));
}

// The hook takes such names from ldconfig: they are no reason to refuse an image.
TEST(LoaderCache, WithNamesThatTheLoaderCannotCompareHasNoOrder) {
  const auto has_order = [](const std::string& name) {
    const std::string bytes = make_loader_cache({{name, "/usr/lib/" + name}});
    const Result<LoaderCache> cache = parse_loader_cache(bytes);
    EXPECT_TRUE(cache) << name;
    return cache && is_ordered(*cache);
  };
  EXPECT_TRUE(has_order("libx.so.123456789.123456789"));
  EXPECT_FALSE(has_order("libx.so.1234567890"));
  EXPECT_FALSE(has_order("libx.so.0000000001"));
  EXPECT_FALSE(has_order("lib\xc3\xa4.so"));
}

// Of an image: entries that all name the same long text would be gigabytes when they are written again.
TEST(LoaderCache, WhoseEntriesShareTextsIsRefusedWhereItWouldGrowTooMuch) {
  const auto with_entries = [](std::size_t count) {
    std::string bytes = make_loader_cache({{"libx.so", "/" + std::string(4000, 'p')}});
    const std::string entry = bytes.substr(48, 24);
    std::string more;
    for (std::size_t i = 1; i < count; ++i) {
      more += entry;
    }
    bytes.insert(48, more);
    const auto put = [&bytes](std::size_t offset, std::size_t number) {
      const auto value = std::uint32_t(number);
      std::memcpy(bytes.data() + offset, &value, sizeof(value));
    };
    put(20, count);
    for (std::size_t i = 0; i < count; ++i) {
      put(48 + (i * 24) + 4, 48 + (count * 24));
      put(48 + (i * 24) + 8, 48 + (count * 24) + sizeof("libx.so"));
    }
    return bytes;
  };
  EXPECT_TRUE(parse_loader_cache(with_entries(1000)));
  const std::string small = with_entries(5000);
  EXPECT_LT(small.size(), 130'000U);
  EXPECT_FALSE(parse_loader_cache(small));
}

TEST(LoaderCache, WithMoreEntriesThanAnyImageHasIsRefused) {
  const auto with_entries = [](std::size_t count) {
    return make_loader_cache(std::vector(count, std::pair<std::string, std::string>("l", "/")));
  };
  EXPECT_TRUE(parse_loader_cache(with_entries(65'536)));
  EXPECT_FALSE(parse_loader_cache(with_entries(65'537)));
}

TEST(LoaderCache, KnowsTheOrderInWhichTheLoaderSearches) {
  const auto is_good = [](const std::vector<std::pair<std::string, std::string>>& libraries) {
    const std::string bytes = make_loader_cache(libraries);
    return is_ordered(*parse_loader_cache(bytes));
  };
  EXPECT_TRUE(is_good({{"libx.so.10", "/l"}, {"libx.so.9", "/l"}, {"libx.so", "/l"}, {"liba.so", "/l"}}));
  EXPECT_TRUE(is_good({{"lib2.so", "/l"}, {"lib-z.so", "/l"}}));  // a digit comes after everything else
  EXPECT_FALSE(is_good({{"libx.so.9", "/l"}, {"libx.so.10", "/l"}}));
  EXPECT_FALSE(is_good({{"liba.so", "/l"}, {"libb.so", "/l"}}));
}

LoaderCache with_hardware() {
  return {{{"libz.so.1", "/usr/lib/glibc-hwcaps/x86-64-v3/libz.so.1", kNative, 0, kNamedHardware | 1},
           {"libz.so.1", "/usr/lib/libz.so.1", kNative, 0, 0},
           {"libz.so.1", "/usr/lib32/libz.so.1", kOther, 0x030200, 0},
           {"libother.so.2", "/opt/renamed.so", kNative, 0, 0}},
          {"x86-64-v2", "x86-64-v3"}};
}

TEST(LoaderCache, IsReadAsItWasWritten) {
  const LoaderCache cache = with_hardware();
  const std::string bytes = render_loader_cache(cache);
  EXPECT_EQ(*parse_loader_cache(bytes), cache);
  const std::string empty = render_loader_cache({});
  EXPECT_EQ(*parse_loader_cache(empty), LoaderCache());
}

TEST(LoaderCache, WithAnUnknownProcessorIsRefused) {
  LoaderCache cache = with_hardware();
  cache.hardware_names.pop_back();
  EXPECT_FALSE(parse_loader_cache(render_loader_cache(cache)));
}

TEST(PutFirst, KeepsTheOrderOfNamesFlagsAndProcessors) {
  LoaderCache cache = with_hardware();
  put_first(cache,
            {{"libz.so.1", "/driver/libz.so.1", kNative},
             {"libz.so.1", "/driver32/libz.so.1", kOther},
             {"libnew.so.10", "/driver/libnew.so.10", kNative},
             {"libz.so.2", "/driver/libz.so.2", kNative}},
            is_never_gone);
  EXPECT_EQ(describe(cache),
            "libz.so.2=/driver/libz.so.2 libz.so.1=/usr/lib/glibc-hwcaps/x86-64-v3/libz.so.1 "
            "libz.so.1=/driver/libz.so.1 libz.so.1=/usr/lib/libz.so.1 libz.so.1=/driver32/libz.so.1 "
            "libz.so.1=/usr/lib32/libz.so.1 libother.so.2=/opt/renamed.so libnew.so.10=/driver/libnew.so.10 ");
  EXPECT_TRUE(is_ordered(cache));
}

TEST(PutFirst, OrdersLibrariesThatComeToTheSamePlace) {
  LoaderCache cache{{{"libz.so.1", "/l/libz.so.1", kNative}, {"liba.so.1", "/l/liba.so.1", kNative}}, {}};
  put_first(cache,
            {{"libm.so.1", "/1/libm.so.1", kNative},
             {"libm.so.2", "/1/libm.so.2", kNative},
             {"libm.so.1", "/2/libm.so.1", kNative},
             {"libx.so.1", "/1/libx.so.1", kOther},
             {"libx.so.1", "/1/libx.so.1", kNative}},
            is_never_gone);
  EXPECT_EQ(describe(cache),
            "libz.so.1=/l/libz.so.1 libx.so.1=/1/libx.so.1 libx.so.1=/1/libx.so.1 libm.so.2=/1/libm.so.2 "
            "libm.so.1=/1/libm.so.1 libm.so.1=/2/libm.so.1 liba.so.1=/l/liba.so.1 ");
  EXPECT_GT(cache.libraries[1].flags, cache.libraries[2].flags);
  EXPECT_TRUE(is_ordered(cache));
}

// With numbers of 32 bits each of these would come before the next one, and the last one before the first.
TEST(PutFirst, OrdersNamesWithNumbersOfAnySize) {
  LoaderCache cache;
  put_first(
      cache,
      {{"libx.so.4000000000", "/3", kNative}, {"libx.so.0", "/1", kNative}, {"libx.so.2000000000", "/2", kNative}},
      is_never_gone);
  EXPECT_EQ(describe(cache), "libx.so.4000000000=/3 libx.so.2000000000=/2 libx.so.0=/1 ");
  EXPECT_FALSE(is_ordered(cache)) << "not by the loader";
}

TEST(PutFirst, ReplacesTheSamePathAndWhatIsGone) {
  LoaderCache cache{{{"libcuda.so.1", "/gone/libcuda.so.1", kNative},
                     {"libcuda.so.1", "/usr/lib/libcuda.so.1", kNative},
                     {"libcuda.so.1", "/own/libcuda.so.1", kNative},
                     {"libc.so.6", "/gone/libc.so.6", kNative}},
                    {}};
  const auto is_gone = [](std::string_view path) { return path.starts_with("/gone/"); };
  const std::vector<CachedLibrary> ours = {{"libcuda.so.1", "/compat/libcuda.so.1", kNative},
                                           {"libcuda.so.1", "/usr/lib/libcuda.so.1", kNative}};
  put_first(cache, ours, is_gone);
  const std::string expected =
      "libcuda.so.1=/compat/libcuda.so.1 libcuda.so.1=/usr/lib/libcuda.so.1 libcuda.so.1=/own/libcuda.so.1 "
      "libc.so.6=/gone/libc.so.6 ";
  EXPECT_EQ(describe(cache), expected);
  put_first(cache, ours, is_gone);
  EXPECT_EQ(describe(cache), expected) << "twice is the same as once";
}

}  // namespace
}  // namespace hf::nvidia
