#include "kernel/files/container_fs.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/text.h"
#include "core/container/cgroup/mount.h"
#include "kernel/files/file.h"

namespace hf::kernel {
namespace {

// Creates a read-only file with this text on a mount of its own, which is not in any mount namespace yet. This is done
// in a private mount namespace, because mounts in ours may propagate to the host's.
Result<Fd> make_detached_file(const std::string& text) {
  const Fd ours(::open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC));
  if (!ours || ::unshare(CLONE_NEWNS) < 0) {
    return fail_errno(errno, "make a mount namespace");
  }
  const auto make = [&text]() -> Fd {
    constexpr const char* kMountPoint = "/proc";
    const std::string file = std::string(kMountPoint) + "/text";
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0 ||
        ::mount("tmpfs", kMountPoint, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755,size=64k") < 0) {
      return {};
    }
    Fd source(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
    const bool is_whole = source && ::write(source.get(), text.data(), text.size()) == ssize_t(text.size());
    source = Fd();  // Kernel: a file that is open for writing keeps its mount from becoming read-only
    const bool is_written =
        is_whole && ::mount(nullptr, kMountPoint, nullptr,
                            MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0;
    return is_written ? Fd(::open_tree(AT_FDCWD, file.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)) : Fd();
  };
  Fd made = make();
  const int why = errno;
  if (::setns(ours.get(), CLONE_NEWNS) < 0) {
    return fail_errno(errno, "go back to the mount namespace");
  }
  return made ? Result<Fd>(std::move(made)) : fail_errno(why, "make a file to mount");
}

// Stops mounts on the mount of this file from propagating to other mount namespaces. Where it is a bind mount from the
// host, the file would be covered on the host as well.
Result<void> stop_propagation(const Fd& file) {
  struct statx status{};
  if (::statx(file.get(), "", AT_EMPTY_PATH, STATX_MNT_ID, &status) < 0 || (status.stx_mask & STATX_MNT_ID) == 0) {
    return fail(std::errc::function_not_supported, "find the mount to cover");
  }
  const std::string text = TRY(read_text(AT_FDCWD, "/proc/thread-self/mountinfo"));
  const std::string id = std::to_string(status.stx_mnt_id) + " ";
  for (const std::string_view line : split(std::string_view(text), '\n')) {
    if (!line.starts_with(id)) {
      continue;
    }
    const std::string point = container::unescape_mountinfo(split_fields(line).at(4));
    return ::mount(nullptr, point.c_str(), nullptr, MS_PRIVATE, nullptr) == 0 ? Result<void>()
                                                                              : fail_errno(errno, "cover " + point);
  }
  return fail(std::errc::no_such_file_or_directory, "find the mount to cover");
}

Result<Fd> open_below(int root, const std::string& path, int flags, std::uint64_t resolve) {
  open_how how{};
  how.flags = std::uint64_t(flags) | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve;
  for (int tries = 0;; ++tries) {
    Fd file(int(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how))));
    constexpr int kMostTries = 32;  // EAGAIN: a parent directory was renamed meanwhile
    if (file || errno != EAGAIN || tries == kMostTries) {
      return file ? Result<Fd>(std::move(file)) : fail_errno(errno, "open " + path);
    }
  }
}

// Processes of the container must be able to enter it, whatever umask the engine has.
Result<void> make_directory_at(const Fd& parent, const std::string& name) {
  constexpr mode_t kMode = 0755;
  if (::mkdirat(parent.get(), name.c_str(), kMode) < 0) {
    return errno == EEXIST ? Result<void>() : fail_errno(errno, "make the directory " + name);
  }
  const Fd made(::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return made && ::fchmod(made.get(), kMode) == 0 ? Result<void>() : fail_errno(errno, "make the directory " + name);
}

Result<void> make_symlink_at(const Fd& directory, const Symlink& link) {
  const auto& [name, target] = link;
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos || target.empty()) {
    return fail(std::errc::invalid_argument, "make a symlink " + name + ": it has no name");
  }
  if (::symlinkat(target.c_str(), directory.get(), name.c_str()) == 0) {
    return {};
  }
  if (errno != EEXIST) {
    return fail_errno(errno, "make the symlink " + name);
  }
  std::array<char, PATH_MAX> text;
  const ssize_t size = ::readlinkat(directory.get(), name.c_str(), text.data(), text.size());
  if (size >= 0 && std::string_view(text.data(), std::size_t(size)) == target) {
    return {};
  }
  struct stat status{};
  const bool is_there = ::fstatat(directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (is_there && !S_ISLNK(status.st_mode)) {
    return {};
  }
  const std::string temporary = "." + name + "." + std::to_string(::gettid());
  (void)::unlinkat(directory.get(), temporary.c_str(), 0);
  if (::symlinkat(target.c_str(), directory.get(), temporary.c_str()) < 0 ||
      ::renameat(directory.get(), temporary.c_str(), directory.get(), name.c_str()) < 0) {
    const int why = errno;
    (void)::unlinkat(directory.get(), temporary.c_str(), 0);
    return fail_errno(why, "make the symlink " + name);
  }
  return {};
}

}  // namespace

Result<Fd> open_inside(int root, const std::string& path, int flags) { return open_below(root, path, flags, 0); }

Result<Fd> open_on_root_mount(int root, const std::string& path, int flags) {
  return open_below(root, path, flags, RESOLVE_NO_XDEV);
}

Result<Fd> open_plain_inside(int root, const std::string& path, int flags) {
  return open_below(root, path, flags, RESOLVE_NO_SYMLINKS);
}

Result<Fd> open_directory_inside(int root, const std::string& path) {
  return open_on_root_mount(root, path, O_RDONLY | O_DIRECTORY);
}

Result<Fd> make_directory_inside(int root, const std::string& path) {
  const auto parts = split(path, '/');
  if (std::ranges::find(parts, "..") != parts.end()) {
    return fail(std::errc::invalid_argument, "make " + path + ": '..' in it");
  }
  if (Result<Fd> whole = open_directory_inside(root, path.empty() ? "." : path)) {
    return whole;  // the common case: one call instead of one for every directory above it
  }
  Fd directory = TRY(open_inside(root, ".", O_PATH | O_DIRECTORY));
  std::string so_far;
  for (const std::string_view part : parts) {
    if (part.empty() || part == ".") {
      continue;
    }
    so_far += "/" + std::string(part);
    Result<Fd> next = open_directory_inside(root, so_far);
    if (!next && next.error().code == std::errc::no_such_file_or_directory) {
      TRY(make_directory_at(directory, std::string(part)));
      next = open_directory_inside(root, so_far);
    }
    directory = TRY(std::move(next));
  }
  return directory;
}

Result<void> make_symlink_inside(int root, const std::string& path, const std::string& target) {
  const std::size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return make_symlinks_inside(root, slash == std::string::npos ? "" : path.substr(0, slash), {{name, target}});
}

Result<void> make_symlinks_inside(int root, const std::string& directory, const std::vector<Symlink>& links) {
  Result<Fd> made = make_directory_inside(root, directory);
  if (!made && made.error().code == std::errc::cross_device_link) {
    return {};  // a volume is not part of the image, so nothing is written into it
  }
  const Fd opened = TRY(std::move(made));
  for (const Symlink& link : links) {
    TRY(make_symlink_at(opened, link));
  }
  return {};
}

bool is_same_directory(int a, int b) {
  struct stat first{};
  struct stat second{};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

bool is_read_only(int root) {
  struct statvfs system{};
  return ::fstatvfs(root, &system) == 0 && (system.f_flag & ST_RDONLY) != 0;
}

Result<void> cover_proc_file(int root, const std::string& path, const std::string& text) {
  const Result<Fd> file = open_inside(root, path, O_PATH | O_NOFOLLOW);
  struct statfs system{};
  if (!file || ::fstatfs(file->get(), &system) < 0 || system.f_type != PROC_SUPER_MAGIC) {
    return {};
  }
  TRY(stop_propagation(*file));
  const Fd mount = TRY(make_detached_file(text));
  if (::move_mount(mount.get(), "", file->get(), "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0) {
    return fail_errno(errno, "cover " + path);
  }
  return {};
}

}  // namespace hf::kernel
