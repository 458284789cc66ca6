// ImagePaths: where paths of an image lead, and which of them mounts will cover once the container exists.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapters/nvidia/library_identity.h"
#include "core/container/entitlement/edits.h"

namespace hf::shim {

class ImagePaths {
 public:
  // `mounts`: all of the container. `known`: the driver's libraries, by their paths on the host; they are many, and no
  // symlink of an image has the name of such a file.
  using Known = std::map<std::string, nvidia::LibraryIdentity>;
  ImagePaths(int root, const std::vector<container::MountEdit>& mounts, const Known& known = {});

  // The path without symlinks, "" where nothing is there. The same path is looked up once.
  const std::string& resolve(const std::string& path);
  // Where a runtime that mounts at this path does so: symlinks are followed as far as there are any, and what is
  // missing is made.
  std::string follow(const std::string& path);
  // Before each lookup in the image: false where there were too many. An image that chains symlinks makes each take a
  // millisecond, and the runtime has no deadline. Beyond the limit nothing that this class says counts.
  bool may_look_up() { return ++lookups_ <= kMostLookups; }
  [[nodiscard]] bool has_too_many_lookups() const { return lookups_ > kMostLookups; }

  // Will something be mounted at this very path?
  bool is_mounted(const std::string& path);
  // The first of these directories that a mount at it or above it will cover.
  std::optional<std::string> find_covered(const std::vector<std::string>& directories);

 private:
  struct Place {
    std::string path;       // without symlinks, "" where nothing is there
    bool is_plain = false;  // what is there of it has no symlinks
  };

  const Place& look_up(const std::string& path);
  [[nodiscard]] Place find(const std::string& path) const;
  std::string follow_parts(const std::string& path);
  std::string read_link(const std::string& path);
  std::string place_of(const std::string& path);
  bool is_covered(const std::string& directory);

  static constexpr std::size_t kMostLookups = 1024;

  int root_;
  std::size_t lookups_ = 0;
  std::map<std::string, Place> places_;
  std::map<std::string, std::string> followed_;
  int links_left_ = 64;            // symlinks that lead nowhere may be followed, in all
  std::set<std::string> mounted_;  // as they are named and where they lead
  std::set<std::string> covered_;  // the same of what may be a directory
};

}  // namespace hf::shim
