// ContainerFs: the file system of a container, accessed from outside. Every symlink in it is resolved as in the
// container, so none leads out of it.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "kernel/files/fd.h"

namespace hf::kernel {

// Like openat2(2) with RESOLVE_IN_ROOT: "/" and ".." stop at the root.
Result<Fd> open_inside(int root, const std::string& path, int flags);

// The same on the mount of the root itself: fails with cross_device_link where something else is mounted.
Result<Fd> open_on_root_mount(int root, const std::string& path, int flags);

// Opens a directory for writing, on the mount of the root itself: fails with cross_device_link in a volume, which is
// not part of the image.
Result<Fd> open_directory_inside(int root, const std::string& path);

// Opens a path that must not contain any symlink. It may be on another mount.
Result<Fd> open_plain_inside(int root, const std::string& path, int flags);

// Opens a directory, and creates it and those above it where they are missing.
Result<Fd> make_directory_inside(int root, const std::string& path);

// Creates a symlink. An existing symlink with another target is replaced; anything else at this path is left alone.
// Does nothing in a volume.
Result<void> make_symlink_inside(int root, const std::string& path, const std::string& target);

// The same for several in one directory, which is opened once.
struct Symlink {
  std::string name;
  std::string target;
};
Result<void> make_symlinks_inside(int root, const std::string& directory, const std::vector<Symlink>& links);

bool is_same_directory(int a, int b);
bool is_read_only(int root);  // as a whole: its mount or its file system

// Mounts a file with this text over a file of procfs, in this mount namespace. Does nothing where there is no such
// file.
Result<void> cover_proc_file(int root, const std::string& path, const std::string& text);

}  // namespace hf::kernel
