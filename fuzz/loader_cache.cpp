// Loader caches of images: what is read is written unchanged, and what is added keeps the order in which the loader
// searches, whatever its name is.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/nvidia/loader_cache.h"
#include "check.h"

namespace {

using namespace hf;

bool is_digit(char character) { return character >= '0' && character <= '9'; }

int take_number(const char*& text) {
  int number = 0;
  for (; is_digit(*text); ++text) {
    number = (number * 10) + (*text - '0');
  }
  return number;
}

// The order of two names for glibc's loader, with its characters and integers (elf/dl-cache.c).
int compare_as_the_loader(const std::string& left, const std::string& right) {
  const char* a = left.c_str();
  const char* b = right.c_str();
  while (*a != '\0') {
    if (is_digit(*a) != is_digit(*b)) {
      return is_digit(*a) ? 1 : -1;
    }
    if (!is_digit(*a) && *a != *b) {
      return *a - *b;
    }
    const int order = is_digit(*a) ? take_number(a) - take_number(b) : *a++ - *b++;
    if (order != 0) {
      return order;
    }
  }
  return -*b;
}

// It searches by halves: in another order it would not find some names.
void check_order(const nvidia::LoaderCache& cache) {
  if (!is_ordered(cache)) {
    return;
  }
  for (std::size_t i = 1; i < cache.libraries.size(); ++i) {
    const std::string before(cache.libraries[i - 1].name);
    check(compare_as_the_loader(before, std::string(cache.libraries[i].name)) >= 0, "the loader has the same order");
  }
}

void check_adding(const nvidia::LoaderCache& cache) {
  const std::vector<nvidia::CachedLibrary> added = {{"libcuda.so.1", "/usr/lib/libcuda.so.1", 0x0303},
                                                    {"libcuda.so.1", "/usr/lib32/libcuda.so.1", 0x0003},
                                                    {"libnvidia-ml.so.1", "/usr/lib/libnvidia-ml.so.1", 0x0303}};
  const auto is_gone = [](std::string_view path) { return path.size() % 2 == 0; };
  nvidia::LoaderCache once = cache;
  put_first(once, added, is_gone);
  check(!is_ordered(cache) || is_ordered(once), "the order is kept");
  check_order(once);
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

// Of the last bytes, which a cache does not need: up to 20 names, with numbers of up to 20 digits.
std::vector<std::string> names_from(std::string_view bytes) {
  std::vector<std::string> names;
  std::uint64_t number = 0;
  for (; names.size() < 20 && bytes.size() >= sizeof(number); bytes.remove_suffix(sizeof(number))) {
    std::memcpy(&number, bytes.data() + bytes.size() - sizeof(number), sizeof(number));
    const char letter = number % 16 == 0 ? '\xe4' : char('a' + (number % 4));
    names.push_back(std::string("lib") + letter + ".so." + std::to_string(number >> (number % 64)));
  }
  return names;
}

bool can_be_compared(const std::string& name) {
  const std::size_t digits = name.size() - name.find_first_of("0123456789");  // at the end of the name
  return digits <= 9 && (name[3] & 0x80) == 0;
}

// Names of libraries come from the image, too.
void check_adding_names(const nvidia::LoaderCache& cache, const std::vector<std::string>& names) {
  std::vector<nvidia::CachedLibrary> added;
  std::vector<std::string> paths;
  paths.reserve(names.size());
  for (const std::string& name : names) {
    added.push_back({name, paths.emplace_back("/usr/lib/" + name), 0x0303});
  }
  nvidia::LoaderCache edited = cache;
  put_first(edited, added, [](std::string_view) { return false; });
  const bool can_be_ordered = std::ranges::all_of(names, can_be_compared);
  check(!is_ordered(cache) || is_ordered(edited) == can_be_ordered, "the order is kept, or the names have none");
  check_order(edited);
  const std::string bytes = render_loader_cache(edited);
  const Result<nvidia::LoaderCache> read = nvidia::parse_loader_cache(bytes);
  check(read && *read == edited, "what is written can be read");
  for (const nvidia::CachedLibrary& library : added) {
    check(std::ranges::find(edited.libraries, library) != edited.libraries.end(), "each of them is there");
  }
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
    check(library.name.find("..") == std::string_view::npos, "a name leads to no other directory");
  }
  const std::string written = render_loader_cache(*cache);
  // 16 MiB of entries and names, and what does not grow with their number: the header and names of processors.
  check(written.size() <= (std::size_t(16) << 20U) + (std::size_t(64) << 10U), "it does not grow without a limit");
  const Result<nvidia::LoaderCache> again = nvidia::parse_loader_cache(written);
  check(again && *again == *cache, "a round trip changes nothing");
  check_adding(*cache);
  check_adding_names(*cache, names_from(bytes));
  return 0;
}
