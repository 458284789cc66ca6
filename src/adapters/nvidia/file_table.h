// FileTable: which files NVIDIA's driver is made of, where they lie, and what of them a container asks for by which
// word of NVIDIA_DRIVER_CAPABILITIES.
#pragma once

#include <span>
#include <string_view>

namespace hf::nvidia {

// Libraries lie wherever libcuda or libnvidia-ml does; these folders are tried first.
std::span<const std::string_view> library_folders();

// "libcuda" of "libcuda.so.1".
std::string_view stem_of(std::string_view library);
// One of the driver's: of its version, or one of the few that count for themselves.
bool is_driver_library(std::string_view name, std::string_view version);
// "" for a library that no word stands for: it is given always.
std::string_view capability_of_library(std::string_view name);

struct KnownFile {
  std::string_view name;
  std::string_view capability;
};

std::span<const KnownFile> binaries();
std::span<const std::string_view> binary_folders();

// Below /etc and /usr/share; the first place that has it counts.
std::span<const KnownFile> config_files();
std::span<const std::string_view> config_folders();

// Modules of the X server.
std::span<const std::string_view> display_folders();

struct KnownLink {
  std::string_view library;  // the stem of the library it leads to
  std::string_view name;
  std::string_view target;  // "" for the library itself
};
// Names that programs look for, and that ldconfig does not make.
std::span<const KnownLink> known_links();

}  // namespace hf::nvidia
