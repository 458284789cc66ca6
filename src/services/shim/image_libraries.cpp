#include "services/shim/image_libraries.h"

#include <algorithm>
#include <string_view>

#include "adapters/nvidia/file_table.h"
#include "core/base/text.h"
#include "kernel/files/container_fs.h"
#include "kernel/files/file.h"
#include "kernel/files/rooted_fs.h"
#include "services/shim/hook.h"

namespace hf::shim {
namespace {

using container::MountEdit;
using nvidia::HookOptions;

constexpr std::size_t kMostOwnLibraries = 64;  // in the image's directory of newer CUDA libraries; NVIDIA's has 20

bool is_library_name(std::string_view name) {
  return name.starts_with("lib") && name.find(".so") != std::string_view::npos;
}

std::optional<nvidia::LibraryIdentity> identity_of(const Result<kernel::Fd>& file) {
  return file ? nvidia::read_library_identity(*file) : std::nullopt;
}

// Absent where it is no library, or has a name that leads to another directory.
std::optional<Library> library_at(const std::string& path, const std::optional<nvidia::LibraryIdentity>& identity) {
  if (!identity || identity->name.find('/') != std::string::npos || identity->name.find("..") != std::string::npos) {
    return std::nullopt;
  }
  const std::string file(base_name(path));
  const std::string& name = identity->name.empty() ? file : identity->name;
  return Library{name, directory_of(path) + "/" + name, file, identity->flags};
}

// "libcuda.so" beside "libcuda.so.1". ldconfig lists such symlinks under their own names: programs that load a library
// by themselves ask for them, and would get the driver's.
bool is_for_linking(int directory, const std::string& file, const std::string& name) {
  return file.ends_with(".so") && name.starts_with(file) && !kernel::read_link(directory, file).empty();
}

Result<std::vector<std::string>> list_libraries(int directory) {
  std::vector<std::string> names;
  std::size_t count = 0;
  kernel::visit_names(directory, ".", [&](std::string_view name) {
    if (is_library_name(name)) {
      names.emplace_back(name);
    }
    return names.size() <= kMostOwnLibraries && ++count <= kMostCompatNames;
  });
  if (names.size() > kMostOwnLibraries || count > kMostCompatNames) {
    return fail(std::errc::file_too_large, "the image has too many files in " + std::string(kCompat));
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

std::optional<nvidia::LibraryIdentity> ImageLibraries::read(const std::string& path) {
  const Result<kernel::Fd> file = open(path);
  const bool is_known = file || file.error().code == std::errc::no_such_file_or_directory ||
                        file.error().code == std::errc::invalid_argument;  // not a regular file
  if (!is_known) {
    problem_ = file.error().message;
  }
  return identity_of(file);
}

Result<kernel::Fd> ImageLibraries::open(const std::string& path) {
  const auto too_many = [&path] { return fail(std::errc::too_many_symbolic_link_levels, "open " + path); };
  const auto [directory, is_new] = directories_.try_emplace(directory_of(path));
  if (is_new) {
    directory->second =
        paths_.may_look_up() ? kernel::open_directory_inside(root_, directory->first) : Result<kernel::Fd>(too_many());
  }
  if (!directory->second) {
    return std::unexpected(directory->second.error());
  }
  Result<kernel::Fd> file = kernel::open_file_at(directory->second->get(), std::string(base_name(path)));
  if (file || file.error().code != std::errc::too_many_symbolic_link_levels) {
    return file;
  }
  return paths_.may_look_up() ? kernel::open_file_in(root_, path, kernel::Mounts::of_root) : too_many();
}

std::vector<Library> read_mounted_libraries(const kernel::Host& host, const RootInput& input,
                                            const HookOptions& options) {
  std::vector<Library> libraries;
  for (const MountEdit& mount : input.mounts) {
    const std::string_view file = base_name(mount.destination);
    if (!is_library_name(file) ||
        std::ranges::find(options.directories, directory_of(mount.destination)) == options.directories.end()) {
      continue;
    }
    const auto known = input.identities.find(mount.source);
    const bool is_known = known != input.identities.end();
    const std::optional<Library> library = library_at(
        mount.destination, is_known ? known->second : identity_of(kernel::open_file_in(host.root.get(), mount.source)));
    const bool is_drivers = is_known || nvidia::is_driver_library(file, options.driver_version);
    if (library && (is_drivers || library->name == library->file)) {
      libraries.push_back(*library);
    }
  }
  return libraries;
}

Result<std::vector<Library>> read_own_libraries(int root, const std::string& driver_version, ImageLibraries& image) {
  const std::string directory = find_compat_directory(root, driver_version);
  if (directory.empty()) {
    return std::vector<Library>();
  }
  const kernel::Fd opened = TRY(kernel::open_directory_inside(root, directory));
  const std::vector<std::string> names = TRY(list_libraries(opened.get()));
  std::vector<Library> libraries;
  for (const std::string& name : names) {
    const std::string path = std::string(directory).append("/").append(name);
    std::optional<Library> library = library_at(path, image.read(path));
    if (library && is_for_linking(opened.get(), name, library->name)) {
      library->name = name;
      library->path = path;
    }
    const bool is_known = library && std::ranges::find(libraries, library->name, &Library::name) != libraries.end();
    if (library && !is_known && std::ranges::binary_search(names, library->name)) {
      libraries.push_back(*library);
    }
  }
  return libraries;
}

}  // namespace hf::shim
