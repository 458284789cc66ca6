#include "adapters/nvidia/loader_cache.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "core/base/text.h"

namespace hf::nvidia {
namespace {

// glibc, sysdeps/generic/dl-cache.h: numbers are in host byte order, offsets count from the newer header.
constexpr std::string_view kOldMagic = "ld.so-1.7.0";
constexpr std::size_t kOldHeader = 16;
constexpr std::size_t kOldCount = 12;
constexpr std::size_t kOldEntry = 12;
constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
constexpr std::size_t kCount = 20;
constexpr std::size_t kStringsSize = 24;
constexpr std::size_t kByteOrder = 28;  // one byte: 0 is unknown
constexpr std::size_t kExtension = 32;  // 0: there is none
constexpr std::size_t kHeader = 48;
constexpr std::size_t kEntry = 24;  // flags, name, path, system version, 8 bytes of hardware
constexpr std::size_t kAlignment = 8;
constexpr char kLittleEndian = 2;

// The extension: magic, number of sections; each section has a tag, flags, an offset and a size.
constexpr std::uint32_t kExtensionMagic = 0xeaa42174;
constexpr std::size_t kExtensionHeader = 8;
constexpr std::size_t kSection = 16;
constexpr std::uint32_t kHardwareNamesTag = 1;
constexpr std::uint64_t kHasHardwareName = std::uint64_t(1) << 62U;  // the lower half of `hardware` is an index then
constexpr std::size_t kNumber = sizeof(std::uint32_t);

constexpr std::size_t kMostEntries = std::size_t(64) << 10U;  // a large image has a few thousand libraries
constexpr std::size_t kMostSections = 16;
constexpr std::size_t kMostHardwareNames = 64;
constexpr std::size_t kMostName = 255;   // NAME_MAX
constexpr std::size_t kMostDigits = 9;   // of a number in a name
constexpr std::size_t kMostPath = 4095;  // PATH_MAX, without its terminating NUL
// Entries may share one text, which is written once for each of them: a small cache could become gigabytes.
constexpr std::size_t kMostRendered = std::size_t(16) << 20U;

std::unexpected<Error> malformed(const std::string& why) {
  return fail(std::errc::invalid_argument, "read the loader's cache: " + why);
}

// The caller has checked that the number lies inside `bytes`.
template <class T = std::uint32_t>
T number_at(std::string_view bytes, std::size_t offset) {
  T number = 0;
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

// Fails where the offset lies outside, or the text is empty, not terminated or longer than `most`.
Result<std::string_view> text_at(std::string_view bytes, std::size_t offset, std::size_t most) {
  const std::string_view rest = offset < bytes.size() ? bytes.substr(offset, most + 1) : std::string_view();
  const std::size_t end = rest.find('\0');
  if (end == std::string_view::npos || end == 0) {
    return malformed("a name lies outside of it, or is too long");
  }
  return rest.substr(0, end);
}

bool is_digit(char character) { return character >= '0' && character <= '9'; }

// Glibc's numbers overflow beyond that, and then its order of names is none: A before B before C before A.
bool has_long_number(std::string_view name) {
  std::size_t digits = 0;
  return std::ranges::any_of(name, [&digits](char character) {
    digits = is_digit(character) ? digits + 1 : 0;
    return digits > kMostDigits;
  });
}

// Whether glibc's characters are signed depends on the architecture, and it compares them with the end of a name, too.
bool is_ascii(std::string_view name) {
  return std::ranges::all_of(name, [](unsigned char character) { return character < 0x80; });
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char character) { return character >= ' ' && character != 0x7f; });
}

// A path may have "..": ldconfig copies a directory from ld.so.conf as it is written there.
bool is_possible(const CachedLibrary& library) {
  return library.name.find('/') == std::string_view::npos && library.name.find("..") == std::string_view::npos &&
         library.path.starts_with('/') && is_printable(library.name) && is_printable(library.path);
}

// Returns its digits without the zeros before them.
std::string_view take_number(std::string_view& text) {
  std::string_view number = text.substr(0, text.find_first_not_of("0123456789"));
  text.remove_prefix(number.size());
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

int compare_numbers(std::string_view a, std::string_view b) {
  return a.size() != b.size() ? (a.size() < b.size() ? -1 : 1) : a.compare(b);
}

// As the loader compares names: digits as numbers, and a digit after everything else. Names that it cannot order have
// an order here, too.
int compare_names(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const int order = compare_numbers(take_number(a), take_number(b));
      if (order != 0) {
        return order;
      }
    } else if (is_digit(a.front()) != is_digit(b.front())) {
      return is_digit(a.front()) ? 1 : -1;
    } else if (a.front() != b.front()) {
      return a.front() < b.front() ? -1 : 1;
    } else {
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.empty() && b.empty() ? 0 : a.empty() ? -1 : 1;
}

Result<std::vector<std::string_view>> parse_hardware_names(std::string_view cache, std::size_t section) {
  const std::size_t offset = number_at(cache, section + 8);
  const std::size_t size = number_at(cache, section + 12);
  if (size % kNumber != 0 || size / kNumber > kMostHardwareNames || offset > cache.size() ||
      size > cache.size() - offset) {
    return malformed("its list of processors lies outside of it");
  }
  std::vector<std::string_view> names;
  for (std::size_t at = offset; at < offset + size; at += kNumber) {
    names.push_back(TRY(text_at(cache, number_at(cache, at), kMostName)));
  }
  return names;
}

Result<std::vector<std::string_view>> parse_extension(std::string_view cache) {
  const std::size_t start = number_at(cache, kExtension);
  if (start == 0) {
    return std::vector<std::string_view>();
  }
  if (start > cache.size() || cache.size() - start < kExtensionHeader || number_at(cache, start) != kExtensionMagic) {
    return malformed("its extension lies outside of it");
  }
  const std::size_t count = number_at(cache, start + kNumber);
  const std::size_t first = start + kExtensionHeader;
  if (count > kMostSections || count * kSection > cache.size() - first) {
    return malformed("its extension lies outside of it");
  }
  for (std::size_t section = first; section < first + (count * kSection); section += kSection) {
    if (number_at(cache, section) == kHardwareNamesTag) {
      return parse_hardware_names(cache, section);
    }
  }
  return std::vector<std::string_view>();
}

bool has_hardware_name(const CachedLibrary& library) { return (library.hardware & kHasHardwareName) != 0; }

Result<CachedLibrary> parse_library(std::string_view cache, std::size_t entry, std::size_t hardware_names) {
  CachedLibrary library;
  library.flags = number_at(cache, entry);
  library.name = TRY(text_at(cache, number_at(cache, entry + 4), kMostName));
  library.path = TRY(text_at(cache, number_at(cache, entry + 8), kMostPath));
  library.system_version = number_at(cache, entry + 12);
  library.hardware = number_at<std::uint64_t>(cache, entry + 16);
  if (has_hardware_name(library) && std::uint32_t(library.hardware) >= hardware_names) {
    return malformed(quote(library.name) + " is made for an unknown processor");
  }
  if (!is_possible(library)) {
    return malformed("it has a library with an impossible name: " + quote(library.name) + " at " + quote(library.path));
  }
  return library;
}

void put_number(std::string& bytes, std::size_t offset, std::size_t number) {
  const auto value = std::uint32_t(number);
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

std::size_t add_text(std::string& bytes, std::string_view text) {
  const std::size_t offset = bytes.size();
  bytes.append(text).push_back('\0');
  return offset;
}

// The path ends with the name as a rule; then they share one text.
bool shares_text(const CachedLibrary& library) { return library.path.ends_with(library.name); }

std::size_t rendered_size_of(const CachedLibrary& library) {
  return kEntry + library.path.size() + 1 + (shares_text(library) ? 0 : library.name.size() + 1);
}

void render_library(std::string& bytes, std::size_t entry, const CachedLibrary& library) {
  const std::size_t path = add_text(bytes, library.path);
  const std::size_t name =
      shares_text(library) ? path + library.path.size() - library.name.size() : add_text(bytes, library.name);
  put_number(bytes, entry, library.flags);
  put_number(bytes, entry + 4, name);
  put_number(bytes, entry + 8, path);
  put_number(bytes, entry + 12, library.system_version);
  std::memcpy(bytes.data() + entry + 16, &library.hardware, sizeof(library.hardware));
}

void render_extension(std::string& bytes, const std::vector<std::size_t>& names) {
  bytes.resize((bytes.size() + kNumber - 1) / kNumber * kNumber);
  const std::size_t start = bytes.size();
  const std::size_t list = start + kExtensionHeader + kSection;
  bytes.resize(list + (names.size() * kNumber));
  put_number(bytes, kExtension, start);
  put_number(bytes, start, kExtensionMagic);
  put_number(bytes, start + kNumber, 1);
  const std::size_t section = start + kExtensionHeader;
  put_number(bytes, section, kHardwareNamesTag);
  put_number(bytes, section + 8, list);
  put_number(bytes, section + 12, names.size() * kNumber);
  for (std::size_t i = 0; i < names.size(); ++i) {
    put_number(bytes, list + (i * kNumber), names[i]);
  }
}

using Libraries = std::vector<CachedLibrary>;

// The libraries of this name and these flags that are made for any processor.
std::ranges::subrange<Libraries::iterator> find_alike(Libraries& all, const CachedLibrary& library) {
  // Names descend, so do flags, and libraries for certain processors come before the others.
  const auto comes_before = [&library](const CachedLibrary& other) {
    const int order = compare_names(other.name, library.name);
    return order > 0 ||
           (order == 0 && (other.flags > library.flags || (other.flags == library.flags && other.hardware != 0)));
  };
  const auto begin = std::ranges::partition_point(all, comes_before);
  const auto end = std::find_if(begin, all.end(), [&library](const CachedLibrary& other) {
    return compare_names(other.name, library.name) != 0 || other.flags != library.flags || other.hardware != 0;
  });
  return {begin, end};
}

// A library that comes before all others from this position on.
struct Insertion {
  std::ptrdiff_t position = 0;
  std::size_t rank = 0;  // among those of its name and flags
  CachedLibrary library;
};

bool comes_first(const Insertion& a, const Insertion& b) {
  if (a.position != b.position) {
    return a.position < b.position;
  }
  const int order = compare_names(a.library.name, b.library.name);
  if (order != 0 || a.library.flags != b.library.flags) {
    return order > 0 || (order == 0 && a.library.flags > b.library.flags);
  }
  return a.rank < b.rank;
}

// One pass over the libraries, however many are inserted. Those without a path are left out.
Libraries merge(const Libraries& all, const std::vector<Insertion>& insertions) {
  Libraries merged;
  merged.reserve(all.size() + insertions.size());
  auto insertion = insertions.begin();
  for (std::size_t i = 0; i <= all.size(); ++i) {
    for (; insertion != insertions.end() && insertion->position == std::ptrdiff_t(i); ++insertion) {
      merged.push_back(insertion->library);
    }
    if (i < all.size() && !all[i].path.empty()) {
      merged.push_back(all[i]);
    }
  }
  return merged;
}

}  // namespace

Result<LoaderCache> parse_loader_cache(std::string_view bytes) {
  const std::string_view cache = skip_old_format(bytes);
  if (cache.size() < kHeader || !cache.starts_with(kMagic)) {
    return fail(std::errc::not_supported, "read the loader's cache: it has another format");
  }
  if (cache[kByteOrder] != 0 && cache[kByteOrder] != kLittleEndian) {
    return malformed("it is made for another architecture");
  }
  const std::size_t count = number_at(cache, kCount);
  if (count > (cache.size() - kHeader) / kEntry) {
    return malformed("it ends before its last entry");
  }
  if (count > kMostEntries) {
    return malformed("it has more than 65,536 entries");
  }
  LoaderCache parsed;
  parsed.hardware_names = TRY(parse_extension(cache));
  parsed.libraries.reserve(count);
  std::size_t rendered = 0;
  for (std::size_t i = 0; i < count; ++i) {
    parsed.libraries.push_back(TRY(parse_library(cache, kHeader + (i * kEntry), parsed.hardware_names.size())));
    rendered += rendered_size_of(parsed.libraries.back());
    if (rendered > kMostRendered) {
      return malformed("it would have more than 16 MiB when it is written again");
    }
  }
  return parsed;
}

bool is_ordered(const LoaderCache& cache) {
  const auto has_order = [](const CachedLibrary& library) {
    return is_ascii(library.name) && !has_long_number(library.name);
  };
  return std::ranges::all_of(cache.libraries, has_order) &&
         std::ranges::is_sorted(cache.libraries, [](const CachedLibrary& a, const CachedLibrary& b) {
           return compare_names(a.name, b.name) > 0;
         });
}

std::string render_loader_cache(const LoaderCache& cache) {
  std::string bytes(kMagic);
  const std::size_t strings = kHeader + (cache.libraries.size() * kEntry);
  bytes.reserve(
      std::transform_reduce(cache.libraries.begin(), cache.libraries.end(), kHeader, std::plus<>(), rendered_size_of));
  bytes.resize(strings);
  put_number(bytes, kCount, cache.libraries.size());
  bytes[kByteOrder] = kLittleEndian;
  std::size_t entry = kHeader;
  for (const CachedLibrary& library : cache.libraries) {
    render_library(bytes, entry, library);
    entry += kEntry;
  }
  std::vector<std::size_t> names;
  names.reserve(cache.hardware_names.size());
  for (const std::string_view name : cache.hardware_names) {
    names.push_back(add_text(bytes, name));
  }
  put_number(bytes, kStringsSize, bytes.size() - strings);
  if (!names.empty()) {
    render_extension(bytes, names);
  }
  return bytes;
}

void put_first(LoaderCache& cache, const std::vector<CachedLibrary>& libraries,
               const std::function<bool(std::string_view path)>& is_gone) {
  std::vector<Insertion> insertions;
  for (const CachedLibrary& library : libraries) {
    const auto alike = find_alike(cache.libraries, library);
    insertions.push_back({alike.begin() - cache.libraries.begin(), insertions.size(), library});
    for (CachedLibrary& other : alike) {
      if (!other.path.empty() && (other.path == library.path || is_gone(other.path))) {
        other.path = {};
      }
    }
  }
  std::ranges::sort(insertions, comes_first);
  cache.libraries = merge(cache.libraries, insertions);
}

}  // namespace hf::nvidia
