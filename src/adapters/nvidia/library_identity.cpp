#include "adapters/nvidia/library_identity.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hf::nvidia {
namespace {

// glibc, sysdeps/generic/ldconfig.h: the C library in the lower byte, the architecture above it.
constexpr std::uint32_t kGlibc = 0x0003;
constexpr std::uint32_t kX86 = kGlibc;
constexpr std::uint32_t kX86With64Bits = kGlibc | 0x0300;
constexpr std::uint32_t kArmWith64Bits = kGlibc | 0x0a00;

constexpr std::size_t kMostSegments = 64;
constexpr std::size_t kMostDynamic = 512;
constexpr std::size_t kMostName = 256;

struct Elf64 {
  using Header = Elf64_Ehdr;
  using Segment = Elf64_Phdr;
  using Dynamic = Elf64_Dyn;
};
struct Elf32 {
  using Header = Elf32_Ehdr;
  using Segment = Elf32_Phdr;
  using Dynamic = Elf32_Dyn;
};

template <class T>
bool read_at(const kernel::Fd& file, std::uint64_t offset, std::span<T> values) {
  const auto bytes = std::as_writable_bytes(values);
  return std::int64_t(offset) >= 0 &&
         ::pread(file.get(), bytes.data(), bytes.size(), off_t(offset)) == ssize_t(bytes.size());
}

// The file offset of an address; absent where no segment has it.
template <class Segment>
std::optional<std::uint64_t> offset_of(const std::vector<Segment>& segments, std::uint64_t address) {
  for (const Segment& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
      return segment.p_offset + (address - segment.p_vaddr);
    }
  }
  return std::nullopt;
}

std::string read_name(const kernel::Fd& file, std::uint64_t offset) {
  std::string text(kMostName, '\0');
  const ssize_t size = std::int64_t(offset) < 0 ? -1 : ::pread(file.get(), text.data(), text.size(), off_t(offset));
  text.resize(size > 0 ? std::size_t(size) : 0);
  const std::size_t end = text.find('\0');
  return end == std::string::npos ? std::string() : text.substr(0, end);
}

template <class Elf>
std::string find_name(const kernel::Fd& file, const std::vector<typename Elf::Segment>& segments,
                      const typename Elf::Segment& dynamic) {
  std::vector<typename Elf::Dynamic> entries(
      std::min<std::size_t>(dynamic.p_filesz / sizeof(typename Elf::Dynamic), kMostDynamic));
  if (!read_at(file, dynamic.p_offset, std::span(entries))) {
    return {};
  }
  std::optional<std::uint64_t> texts;
  std::optional<std::uint64_t> name;
  for (const auto& entry : entries) {
    if (entry.d_tag == DT_NULL) {
      break;
    }
    if (entry.d_tag == DT_STRTAB) {
      texts = offset_of(segments, entry.d_un.d_ptr);
    } else if (entry.d_tag == DT_SONAME) {
      name = entry.d_un.d_val;
    }
  }
  return texts && name ? read_name(file, *texts + *name) : std::string();
}

// Absent where it is no dynamic library.
template <class Elf>
std::optional<std::string> read_library_name(const kernel::Fd& file) {
  typename Elf::Header header{};
  if (!read_at(file, 0, std::span(&header, 1)) || header.e_type != ET_DYN ||
      header.e_phentsize != sizeof(typename Elf::Segment) || header.e_phnum > kMostSegments) {
    return std::nullopt;
  }
  std::vector<typename Elf::Segment> segments(header.e_phnum);
  if (!read_at(file, header.e_phoff, std::span(segments))) {
    return std::nullopt;
  }
  const auto dynamic = std::ranges::find(segments, std::uint32_t(PT_DYNAMIC), &Elf::Segment::p_type);
  return dynamic == segments.end() ? std::nullopt : std::optional(find_name<Elf>(file, segments, *dynamic));
}

}  // namespace

std::optional<LibraryIdentity> read_library_identity(const kernel::Fd& file) {
  Elf32_Ehdr header{};  // both formats begin alike
  struct stat status{};
  if (::fstat(file.get(), &status) < 0 || status.st_size < off_t(sizeof(header))) {
    return std::nullopt;  // files of procfs and tracefs have no size, and reading one may take from it
  }
  if (!read_at(file, 0, std::span(&header, 1)) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return std::nullopt;
  }
  const bool has_64_bits = header.e_ident[EI_CLASS] == ELFCLASS64;
  std::uint32_t flags = 0;
  if (header.e_machine == EM_X86_64 && has_64_bits) {
    flags = kX86With64Bits;
  } else if (header.e_machine == EM_AARCH64 && has_64_bits) {
    flags = kArmWith64Bits;
  } else if (header.e_machine == EM_386 && !has_64_bits) {
    flags = kX86;
  } else {
    return std::nullopt;
  }
  std::optional<std::string> name = has_64_bits ? read_library_name<Elf64>(file) : read_library_name<Elf32>(file);
  return name ? std::optional(LibraryIdentity{*std::move(name), flags}) : std::nullopt;
}

}  // namespace hf::nvidia
