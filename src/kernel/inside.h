// Inside: the file system of a container from outside: every link in it is taken as the container would, and none leads
// out.
#pragma once

#include <string>

#include "core/base/result.h"
#include "kernel/fd.h"

namespace hf::kernel {

// As openat2(2) with RESOLVE_IN_ROOT: "/" and ".." end at the root.
Result<Fd> open_inside(int root, const std::string& path, int flags);

// A directory to write in, on the mount of the root itself: a volume is not the image's (cross_device_link).
Result<Fd> open_directory_inside(int root, const std::string& path);

// The same where no symlink may be on the way at all.
Result<Fd> open_plain_inside(int root, const std::string& path);

// A folder, with those above it: made where they are missing.
Result<Fd> make_folder_inside(int root, const std::string& path);

// A symbolic link. A link that is there is replaced where it leads elsewhere; anything else stays, and is left alone.
// In a volume nothing is done.
Result<void> make_link_inside(int root, const std::string& path, const std::string& target);

// Another text in the place of a file of procfs, for this mount namespace. Nothing is done where there is no such file.
Result<void> cover_proc_file(int root, const std::string& path, const std::string& text);

}  // namespace hf::kernel
