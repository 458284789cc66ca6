// FileTable: the files that NVIDIA's driver consists of, their directories, and the capability of
// NVIDIA_DRIVER_CAPABILITIES by which a container asks for each of them.
#pragma once

#include <span>
#include <string_view>

namespace hf::nvidia {

// The libraries are in the directories that have libcuda or libnvidia-ml; these are tried first.
std::span<const std::string_view> library_directories();

// "libcuda" of "libcuda.so.1".
std::string_view stem_of(std::string_view library);
// Is it one of the driver's? It has the driver's version, or is one of the few with a version of their own.
bool is_driver_library(std::string_view name, std::string_view version);
// "" for a library that no capability stands for: every container gets it.
std::string_view capability_of_library(std::string_view name);

struct KnownFile {
  std::string_view name;
  std::string_view capability;
};

std::span<const KnownFile> binaries();
std::span<const std::string_view> binary_directories();

// Paths below config_directories(); the first directory that has the file counts.
std::span<const KnownFile> config_files();
std::span<const std::string_view> config_directories();

// Modules of the X server.
std::span<const std::string_view> display_directories();

struct KnownLink {
  std::string_view library;  // the stem of the library it points to
  std::string_view name;
  std::string_view target;  // "" for the library itself
};
// Symlinks that programs open by name, and that ldconfig does not create.
std::span<const KnownLink> known_links();

}  // namespace hf::nvidia
