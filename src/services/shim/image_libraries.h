// ImageLibraries: the libraries that a container's loader has to know: those that are mounted, and the image's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "adapters/nvidia/hook_options.h"
#include "adapters/nvidia/library_identity.h"
#include "core/base/result.h"
#include "kernel/files/fd.h"
#include "kernel/files/host.h"
#include "services/shim/image_paths.h"
#include "services/shim/root_files.h"

namespace hf::shim {

// A library under the name that programs ask for.
struct Library {
  std::string name;
  std::string path;
  std::string file;  // the name of the file in the same directory
  std::uint32_t flags = 0;
};

// Reads libraries of an image. Directories are looked up once. Lookups of directories and symlinks count with those of
// its paths.
class ImageLibraries {
 public:
  ImageLibraries(int root, ImagePaths& paths) : root_(root), paths_(paths) {}

  // Absent where there is none.
  std::optional<nvidia::LibraryIdentity> read(const std::string& path);
  // Why one could not be read although there may be one: then nothing is known about it. "": all were read.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  Result<kernel::Fd> open(const std::string& path);

  int root_;
  ImagePaths& paths_;
  std::map<std::string, Result<kernel::Fd>> directories_;
  std::string problem_;
};

// The driver's, and those of the user that have the names by which programs ask for them: no symlink is made to a file
// of the user.
std::vector<Library> read_mounted_libraries(const kernel::Host& host, const RootInput& input,
                                            const nvidia::HookOptions& options);

// The image's own CUDA libraries, where they are newer than the driver's.
Result<std::vector<Library>> read_own_libraries(int root, const std::string& driver_version, ImageLibraries& image);

}  // namespace hf::shim
