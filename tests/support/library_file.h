// LibraryFile: the smallest file that ldconfig takes for a library with a name of its own.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include <elf.h>

namespace hf::test {

#if defined(__aarch64__)
inline constexpr std::uint32_t kNativeLibrary = 0x0a03;
inline constexpr std::uint16_t kNativeMachine = EM_AARCH64;
#else
inline constexpr std::uint32_t kNativeLibrary = 0x0303;
inline constexpr std::uint16_t kNativeMachine = EM_X86_64;
#endif

// A header, two segments, the dynamic section, and its names. "" is a library without a name.
inline std::string make_library(const std::string& name) {
  struct File {
    Elf64_Ehdr header{};
    Elf64_Phdr segments[2]{};
    Elf64_Dyn dynamic[3]{};
  } file;
  std::memcpy(file.header.e_ident, ELFMAG, SELFMAG);
  file.header.e_ident[EI_CLASS] = ELFCLASS64;
  file.header.e_ident[EI_DATA] = ELFDATA2LSB;
  file.header.e_ident[EI_VERSION] = EV_CURRENT;
  file.header.e_type = ET_DYN;
  file.header.e_machine = kNativeMachine;
  file.header.e_version = EV_CURRENT;
  file.header.e_ehsize = sizeof(Elf64_Ehdr);
  file.header.e_phoff = offsetof(File, segments);
  file.header.e_phentsize = sizeof(Elf64_Phdr);
  file.header.e_phnum = 2;
  const std::string names = '\0' + name + '\0';
  file.segments[0] = {PT_LOAD, PF_R, 0, 0, 0, sizeof(File) + names.size(), sizeof(File) + names.size(), 8};
  file.segments[1] = {PT_DYNAMIC,
                      PF_R,
                      offsetof(File, dynamic),
                      offsetof(File, dynamic),
                      offsetof(File, dynamic),
                      sizeof(file.dynamic),
                      sizeof(file.dynamic),
                      8};
  file.dynamic[0].d_tag = DT_STRTAB;
  file.dynamic[0].d_un.d_ptr = sizeof(File);
  file.dynamic[1].d_tag = name.empty() ? DT_NULL : DT_SONAME;
  file.dynamic[1].d_un.d_val = 1;
  return std::string(reinterpret_cast<const char*>(&file), sizeof(file)) + names;
}

}  // namespace hf::test
