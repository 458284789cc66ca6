#include "services/shim/image_paths.h"

#include <algorithm>
#include <string_view>

#include "core/base/text.h"
#include "kernel/files/rooted_fs.h"

namespace hf::shim {
namespace {

// Users write "/usr/local/" and "//usr/local" too.
std::string clean(const std::string& path) {
  std::string cleaned;
  for (const std::string_view part : split(std::string_view(path), '/')) {
    if (!part.empty() && part != ".") {
      cleaned.append("/").append(part);
    }
  }
  return cleaned.empty() ? "/" : cleaned;
}

bool is_at_or_above(const std::string& path, const std::string& directory) {
  return path == "/" || path == directory || directory.starts_with(path + "/");
}

}  // namespace

std::string directory_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

ImagePaths::ImagePaths(int root, const std::vector<container::MountEdit>& mounts) : root_(root) {
  for (const container::MountEdit& mount : mounts) {
    const std::string path = clean(mount.destination);
    mounted_.insert(place_of(path));
    // Most mounts are the driver's libraries.
    if (base_name(path).find(".so") == std::string_view::npos) {
      covered_.insert({path, resolve(path)});
    }
  }
  covered_.erase("");
}

const std::string& ImagePaths::resolve(const std::string& path) {
  const auto [known, is_new] = known_.try_emplace(path);
  if (is_new) {
    std::optional<kernel::Found> found = kernel::find_in(root_, path);
    known->second = found ? std::move(found->path) : std::string();
  }
  return known->second;
}

bool ImagePaths::is_mounted(const std::string& path) { return mounted_.contains(place_of(path)); }

std::optional<std::string> ImagePaths::find_covered(const std::vector<std::string>& directories) {
  const auto found =
      std::ranges::find_if(directories, [this](const std::string& directory) { return is_covered(directory); });
  return found == directories.end() ? std::nullopt : std::optional(*found);
}

std::string ImagePaths::place_of(const std::string& path) {
  const std::string directory = directory_of(path);
  const std::string& real = resolve(directory.empty() ? "/" : directory);
  return (real.empty() ? directory : real == "/" ? "" : real) + "/" + std::string(base_name(path));
}

bool ImagePaths::is_covered(const std::string& directory) {
  const std::string& real = resolve(directory);
  return std::ranges::any_of(covered_, [&](const std::string& mount) {
    return is_at_or_above(mount, directory) || (!real.empty() && is_at_or_above(mount, real));
  });
}

}  // namespace hf::shim
