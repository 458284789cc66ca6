#include "services/shim/image_paths.h"

#include <algorithm>
#include <string_view>

#include <fcntl.h>

#include "core/base/text.h"
#include "kernel/files/container_fs.h"
#include "kernel/files/rooted_fs.h"

namespace hf::shim {
namespace {

constexpr std::ptrdiff_t kMostParts = 32;

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

ImagePaths::ImagePaths(int root, const std::vector<container::MountEdit>& mounts, const Known& known) : root_(root) {
  for (const container::MountEdit& mount : mounts) {
    const std::string path = clean(mount.destination);
    mounted_.insert(place_of(path));
    if (!known.contains(mount.source)) {
      mounted_.insert(follow(path));
      covered_.insert({path, follow(path)});
    }
  }
}

const std::string& ImagePaths::resolve(const std::string& path) { return look_up(path).path; }

const ImagePaths::Place& ImagePaths::look_up(const std::string& path) {
  const auto [place, is_new] = places_.try_emplace(path);
  if (is_new && may_look_up()) {
    place->second = find(path);
  }
  return place->second;
}

// Most paths have no symlinks, and one call tells.
ImagePaths::Place ImagePaths::find(const std::string& path) const {
  if (!path.contains("..") && path == clean(path)) {
    const Result<kernel::Fd> plain = kernel::open_plain_inside(root_, path, O_PATH);
    if (plain || plain.error().code == std::errc::no_such_file_or_directory) {
      return {plain ? path : "", true};
    }
  }
  std::optional<kernel::Found> found = kernel::find_in(root_, path);
  return {found ? std::move(found->path) : "", false};
}

std::string ImagePaths::follow(const std::string& path) {
  const std::string cleaned = clean(path);
  if (const auto known = followed_.find(cleaned); known != followed_.end()) {
    return known->second;
  }
  // Looking up each part of a long path costs the square of its length. "/" covers everything.
  std::string end = std::ranges::count(cleaned, '/') > kMostParts ? "/" : follow_parts(cleaned);
  return followed_.emplace(cleaned, std::move(end)).first->second;
}

// Like runtimes: ".." leads to the directory above the one that was reached, and what is missing has no symlinks.
std::string ImagePaths::follow_parts(const std::string& path) {
  if (const Place& place = look_up(path); place.is_plain || !place.path.empty() || path == "/") {
    return place.path.empty() ? path : place.path;
  }
  const std::string above = follow(directory_of(path));
  const std::string name(base_name(path));
  if (name == "..") {
    return clean(directory_of(above));
  }
  const std::string joined = (above == "/" ? "" : above) + "/" + name;
  const std::string target = read_link(joined);
  if (!target.empty()) {
    return links_left_-- > 0 ? follow(target.starts_with('/') ? target : above + "/" + target) : "/";
  }
  const std::string& real = resolve(joined);
  return real.empty() ? joined : real;
}

std::string ImagePaths::read_link(const std::string& path) {
  const Result<kernel::Fd> link = may_look_up() ? kernel::open_inside(root_, path, O_PATH | O_NOFOLLOW)
                                                : fail(std::errc::too_many_symbolic_link_levels, "open " + path);
  return link ? kernel::read_link(link->get(), "") : std::string();
}

bool ImagePaths::is_mounted(const std::string& path) { return mounted_.contains(place_of(path)); }

std::optional<std::string> ImagePaths::find_covered(const std::vector<std::string>& directories) {
  const auto found =
      std::ranges::find_if(directories, [this](const std::string& directory) { return is_covered(directory); });
  return found == directories.end() ? std::nullopt : std::optional(*found);
}

// A symlink as the last part is not followed.
std::string ImagePaths::place_of(const std::string& path) {
  const std::string name(base_name(path));
  if (name == "..") {
    return follow(path);
  }
  const std::string real = follow(directory_of(path));
  return (real == "/" ? "" : real) + "/" + name;
}

bool ImagePaths::is_covered(const std::string& directory) {
  const std::string& real = resolve(directory);
  return std::ranges::any_of(covered_, [&](const std::string& mount) {
    return is_at_or_above(mount, directory) || (!real.empty() && is_at_or_above(mount, real));
  });
}

}  // namespace hf::shim
