#include "kernel/files/file.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hf::kernel {
namespace {

constexpr std::size_t kLongestText = std::size_t(16) << 20U;

Result<std::string> read_at_most(const Fd& file, const std::string& path, std::size_t most) {
  std::string text;
  std::array<char, 16384> buffer;
  while (true) {
    const std::size_t size = std::min(buffer.size(), most - text.size());
    const ssize_t count = size == 0 ? 0 : ::read(file.get(), buffer.data(), size);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return fail_errno(errno, "read " + path);
    }
    if (count == 0) {
      return text;
    }
    text.append(buffer.data(), std::size_t(count));
  }
}

Result<std::string> read_all(const Fd& file, const std::string& path) {
  constexpr std::size_t kMost = std::size_t(64) << 20U;  // callers with a lower limit have checked the size before
  return read_at_most(file, path, kMost);
}

// The path for messages. Paths of the host are relative to its root directory, and users know them with a "/".
// Callers have yet to read errno.
std::string shown(int directory, const std::string& path) {
  const int number = errno;
  struct stat root{};
  struct stat base{};
  const bool is_below_root = directory != AT_FDCWD && !path.starts_with('/') && ::fstat(directory, &base) == 0 &&
                             ::stat("/", &root) == 0 && base.st_dev == root.st_dev && base.st_ino == root.st_ino;
  errno = number;
  return is_below_root ? "/" + path : path;
}

}  // namespace

Result<Fd> open_directory(int directory, const std::string& path) {
  Fd opened(::openat(directory, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened) {
    return fail_errno(errno, "open " + shown(directory, path));
  }
  return opened;
}

Result<Fd> open_plain_directory(int directory, const std::string& path) {
  open_how how{};
  how.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_NO_MAGICLINKS;
  Fd opened(int(::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof(how))));
  if (!opened) {
    return fail_errno(errno, "open " + shown(directory, path));
  }
  return opened;
}

Result<std::string> read_text(int directory, const std::string& path) {
  const Fd file(::openat(directory, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    return fail_errno(errno, "open " + shown(directory, path));
  }
  std::string text = TRY(read_at_most(file, path, kLongestText + 1));
  if (text.size() > kLongestText) {
    return fail(std::errc::file_too_large, "read " + shown(directory, path) + ": it has more than 16 MiB");
  }
  return text;
}

Result<std::string> read_start(int directory, const std::string& path, std::size_t most) {
  const Fd file(::openat(directory, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    return fail_errno(errno, "open " + shown(directory, path));
  }
  return read_at_most(file, path, most);
}

Result<std::string> read_input() {
  const Fd file(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
  return file ? read_at_most(file, "standard input", kLongestText) : fail_errno(errno, "read standard input");
}

Result<std::string> read_regular_file(const std::string& path) {
  constexpr off_t kLargest = off_t(64) * 1024 * 1024;
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    return fail_errno(errno, "open " + path);
  }
  struct stat status{};
  if (::fstat(file.get(), &status) < 0) {
    return fail_errno(errno, "stat " + path);
  }
  if (!S_ISREG(status.st_mode) || status.st_size > kLargest) {
    return fail(std::errc::invalid_argument, "read " + path + ": want a regular file of at most 64 MiB");
  }
  return read_all(file, path);
}

Result<std::string> read_trusted_file(int directory, const std::string& path) {
  constexpr off_t kLargest = off_t(16) * 1024 * 1024;
  const Fd file(::openat(directory, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file) {
    return fail_errno(errno, "open " + shown(directory, path));
  }
  struct stat status{};
  if (::fstat(file.get(), &status) < 0) {
    return fail_errno(errno, "stat " + shown(directory, path));
  }
  if (!S_ISREG(status.st_mode) || status.st_size > kLargest) {
    return fail(std::errc::invalid_argument,
                "read " + shown(directory, path) + ": want a regular file of at most 16 MiB");
  }
  if (status.st_uid != 0 || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail(std::errc::permission_denied, "read " + shown(directory, path) + ": others than root may write it");
  }
  return read_all(file, path);
}

bool is_trusted_directory(int directory) {
  struct stat status{};
  return ::fstat(directory, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == 0 &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

void visit_names(int directory, const std::string& path, const std::function<bool(std::string_view name)>& visit) {
  const int opened = ::openat(directory, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) {
    return;
  }
  DIR* const stream = ::fdopendir(opened);
  if (stream == nullptr) {
    ::close(opened);
    return;
  }
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && !visit(name)) {
      break;
    }
  }
  ::closedir(stream);
}

std::vector<std::string> list_names(int directory, const std::string& path) {
  std::vector<std::string> names;
  visit_names(directory, path, [&names](std::string_view name) {
    names.emplace_back(name);
    return true;
  });
  std::ranges::sort(names);
  return names;
}

bool exists(int directory, const std::string& path) {
  struct stat status{};
  return ::fstatat(directory, path.c_str(), &status, 0) == 0;
}

std::string stamp_of(int directory, const std::string& path) {
  struct stat status{};
  if (::fstatat(directory, path.c_str(), &status, 0) < 0) {
    return {};
  }
  std::string stamp;
  for (const auto number : {std::uint64_t(status.st_dev), std::uint64_t(status.st_ino), std::uint64_t(status.st_size),
                            std::uint64_t(status.st_mtim.tv_sec), std::uint64_t(status.st_mtim.tv_nsec)}) {
    stamp += std::to_string(number) + " ";
  }
  return stamp;
}

Result<void> replace_file(int directory, const std::string& path, const NewFile& file) {
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  const std::string temporary = path.substr(0, name) + "." + path.substr(name) + "." + std::to_string(::gettid());
  (void)::unlinkat(directory, temporary.c_str(), 0);  // left by a thread with the same id that was killed
  const Fd made(
      ::openat(directory, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, file.mode));
  if (!made) {
    return fail_errno(errno, "write " + shown(directory, temporary));
  }
  std::string_view rest = file.text;
  ssize_t written = 0;
  while (!rest.empty() && (written = ::write(made.get(), rest.data(), rest.size())) > 0) {
    rest.remove_prefix(std::size_t(written));
  }
  const bool has_owner = !file.owner || ::fchown(made.get(), file.owner->uid, file.owner->gid) == 0;
  const bool is_whole = rest.empty() && has_owner && ::fchmod(made.get(), file.mode) == 0 &&
                        (!file.is_synced || ::fsync(made.get()) == 0);
  if (is_whole && ::renameat(directory, temporary.c_str(), directory, path.c_str()) == 0) {
    return {};
  }
  const int why = errno;
  (void)::unlinkat(directory, temporary.c_str(), 0);
  return fail_errno(why, "write " + shown(directory, path));
}

Result<std::optional<PlainFile>> read_plain_file(int directory, const std::string& path) {
  constexpr off_t kLargest = off_t(16) * 1024 * 1024;
  constexpr mode_t kBits = 07777;
  const Fd file(::openat(directory, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file && errno == ENOENT) {
    return std::nullopt;
  }
  if (!file && errno == ELOOP) {
    return fail(std::errc::too_many_symbolic_link_levels,
                "read " + shown(directory, path) + ": it is a symlink; name the file it points to");
  }
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) < 0) {
    return fail_errno(errno, "read " + shown(directory, path));
  }
  if (!S_ISREG(status.st_mode) || status.st_size > kLargest) {
    return fail(std::errc::invalid_argument,
                "read " + shown(directory, path) + ": want a regular file of at most 16 MiB");
  }
  return PlainFile{TRY(read_all(file, path)), status.st_mode & kBits, FileOwner{status.st_uid, status.st_gid}};
}

Result<void> create_hard_link(int directory, const std::string& path, const std::string& name) {
  if (::linkat(directory, path.c_str(), directory, name.c_str(), 0) != 0) {
    return fail_errno(errno, "keep " + shown(directory, path) + " as " + name);
  }
  return {};
}

Result<void> make_directories(int directory, const std::string& path) {
  constexpr mode_t kMode = 0755;
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (!part.empty() && ::mkdirat(directory, part.c_str(), kMode) < 0 && errno != EEXIST) {
      return fail_errno(errno, "make " + shown(directory, part));
    }
    if (slash == std::string::npos) {
      return {};
    }
  }
}

Result<void> remove_file(int directory, const std::string& path) {
  if (::unlinkat(directory, path.c_str(), 0) < 0 && errno != ENOENT) {
    return fail_errno(errno, "remove " + shown(directory, path));
  }
  return {};
}

Result<void> write_text(int directory, const std::string& path, std::string_view text) {
  const Fd file(::openat(directory, path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) {
    return fail_errno(errno, "open " + shown(directory, path));
  }
  const ssize_t count = ::write(file.get(), text.data(), text.size());
  if (count != ssize_t(text.size())) {
    return fail_errno(count < 0 ? errno : EIO, "write '" + std::string(text) + "' to " + shown(directory, path));
  }
  return {};
}

}  // namespace hf::kernel
