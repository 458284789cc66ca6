#include "kernel/inside.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/text.h"

namespace hf::kernel {
namespace {

std::string through(const Fd& file) { return "/proc/self/fd/" + std::to_string(file.get()); }

// A folder of the host to hang a file system on for a moment: this mount namespace is the container's already.
const char* find_hook() {
  struct stat status{};
  for (const char* folder : {"/mnt", "/srv", "/media", "/tmp"}) {
    if (::stat(folder, &status) == 0 && S_ISDIR(status.st_mode)) {
      return folder;
    }
  }
  return "/run";
}

}  // namespace

Result<Fd> open_inside(int root, const std::string& path, int flags) {
  open_how how{};
  how.flags = std::uint64_t(flags) | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  for (int tries = 0;; ++tries) {
    Fd file(int(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how))));
    constexpr int kMostTries = 32;  // somebody renames on the way
    if (file || errno != EAGAIN || tries == kMostTries) {
      return file ? Result<Fd>(std::move(file)) : fail_errno(errno, "open " + path);
    }
  }
}

Result<Fd> make_folder_inside(int root, const std::string& path) {
  const auto parts = split(path, '/');
  if (std::ranges::find(parts, "..") != parts.end()) {
    return fail(std::errc::invalid_argument, "make " + path + ": '..' in it");
  }
  if (Result<Fd> whole = open_inside(root, path, O_PATH | O_DIRECTORY)) {
    return whole;  // as mostly: one look instead of one for every folder above it
  }
  Fd folder = TRY(open_inside(root, ".", O_PATH | O_DIRECTORY));
  std::string so_far;
  for (const std::string_view part : parts) {
    if (part.empty() || part == ".") {
      continue;
    }
    so_far += "/" + std::string(part);
    Result<Fd> next = open_inside(root, so_far, O_PATH | O_DIRECTORY);
    if (!next && next.error().code == std::errc::no_such_file_or_directory) {
      if (::mkdirat(folder.get(), std::string(part).c_str(), 0755) < 0 && errno != EEXIST) {
        return fail_errno(errno, "make " + so_far);
      }
      next = open_inside(root, so_far, O_PATH | O_DIRECTORY);
    }
    folder = TRY(std::move(next));
  }
  return folder;
}

Result<void> make_link_inside(int root, const std::string& path, const std::string& target) {
  const std::size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.empty() || name == "." || name == ".." || target.empty()) {
    return fail(std::errc::invalid_argument, "make a link " + path + ": it has no name");
  }
  const Fd folder = TRY(make_folder_inside(root, slash == std::string::npos ? "" : path.substr(0, slash)));
  std::array<char, PATH_MAX> text{};
  const ssize_t size = ::readlinkat(folder.get(), name.c_str(), text.data(), text.size());
  if (size >= 0 && std::string_view(text.data(), std::size_t(size)) == target) {
    return {};
  }
  struct stat status{};
  const bool is_there = ::fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (is_there && !S_ISLNK(status.st_mode)) {
    return {};
  }
  const std::string beside = "." + name + "." + std::to_string(::gettid());
  (void)::unlinkat(folder.get(), beside.c_str(), 0);
  if (::symlinkat(target.c_str(), folder.get(), beside.c_str()) < 0 ||
      ::renameat(folder.get(), beside.c_str(), folder.get(), name.c_str()) < 0) {
    const int why = errno;
    (void)::unlinkat(folder.get(), beside.c_str(), 0);
    return fail_errno(why, "make the link " + path);
  }
  return {};
}

Result<void> cover_proc_file(int root, const std::string& path, const std::string& text) {
  const Result<Fd> file = open_inside(root, path, O_PATH | O_NOFOLLOW);
  struct statfs system{};
  if (!file || ::fstatfs(file->get(), &system) < 0 || system.f_type != PROC_SUPER_MAGIC) {
    return {};
  }
  const std::string hook = find_hook();
  if (::mount("tmpfs", hook.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755,size=64k") < 0) {
    return fail_errno(errno, "mount a tmpfs");
  }
  const std::string made = hook + "/text";
  const Fd source(::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
  const bool is_covered = source && ::write(source.get(), text.data(), text.size()) == ssize_t(text.size()) &&
                          ::mount(made.c_str(), through(*file).c_str(), nullptr, MS_BIND, nullptr) == 0 &&
                          ::mount(nullptr, through(TRY(open_inside(root, path, O_PATH | O_NOFOLLOW))).c_str(), nullptr,
                                  MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0;
  const int why = errno;
  (void)::umount2(hook.c_str(), MNT_DETACH);
  return is_covered ? Result<void>() : fail_errno(why, "cover " + path);
}

}  // namespace hf::kernel
