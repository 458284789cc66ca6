#include "kernel/files/rooted_fs.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/files/container_fs.h"

namespace hf::kernel {
namespace {

EntryKind kind_of_mode(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG: return EntryKind::file;
    case S_IFDIR: return EntryKind::directory;
    case S_IFLNK: return EntryKind::link;
    case S_IFSOCK: return EntryKind::socket;
    default: return EntryKind::other;
  }
}

// Some file systems do not report the kind along with the name.
EntryKind kind_of(int directory, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) {
    return kind_of_mode(mode_t(DTTOIF(entry.d_type)));
  }
  struct stat status{};
  return ::fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? kind_of_mode(status.st_mode)
                                                                               : EntryKind::other;
}

std::string path_of(int file) { return read_link(AT_FDCWD, "/proc/self/fd/" + std::to_string(file)); }

// "" where it is not below the root.
std::string path_below(int root, int file) {
  const std::string top = path_of(root);
  std::string path = path_of(file);
  if (top == "/" || top.empty()) {
    return path;
  }
  if (path == top) {
    return "/";
  }
  return path.starts_with(top + "/") ? path.substr(top.size()) : std::string();
}

// O_NONBLOCK: open(2) waits up to 45 s for the holder of a lease, and reading some files of procfs and tracefs waits.
Result<Fd> open_found(const Fd& found, const std::string& path) {
  struct stat status{};
  if (::fstat(found.get(), &status) < 0 || !S_ISREG(status.st_mode)) {
    return S_ISLNK(status.st_mode) ? fail(std::errc::too_many_symbolic_link_levels, "open " + path + ": a symlink")
                                   : fail(std::errc::invalid_argument, "open " + path + ": not a regular file");
  }
  Fd file(::open(("/proc/self/fd/" + std::to_string(found.get())).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  return file ? Result<Fd>(std::move(file)) : fail_errno(errno, "open " + path);
}

}  // namespace

std::optional<Found> find_in(int root, const std::string& path) {
  const Result<Fd> file = open_inside(root, path, O_PATH);
  struct stat status{};
  if (!file || ::fstat(file->get(), &status) < 0) {
    return std::nullopt;
  }
  Found found{path_below(root, file->get()), kind_of_mode(status.st_mode), status.st_uid};
  return found.path.empty() ? std::nullopt : std::optional(std::move(found));
}

Result<Fd> open_directory_in(int root, const std::string& path) {
  return open_inside(root, path, O_RDONLY | O_DIRECTORY);
}

Result<Fd> open_file_in(int root, const std::string& path, Mounts mounts) {
  const Fd found =
      TRY(mounts == Mounts::all ? open_inside(root, path, O_PATH) : open_on_root_mount(root, path, O_PATH));
  return open_found(found, path);
}

Result<Fd> open_file_at(int directory, const std::string& name) {
  const Fd found = TRY(open_on_root_mount(directory, name, O_PATH | O_NOFOLLOW));
  return open_found(found, name);
}

std::vector<Entry> list_entries(int directory, const WantedEntry& wanted) {
  std::vector<Entry> entries;
  const int opened = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);  // it has its own offset
  DIR* const stream = opened < 0 ? nullptr : ::fdopendir(opened);
  if (stream == nullptr) {
    const Fd closed(opened);
    return entries;
  }
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    const EntryKind kind = kind_of(directory, *entry);
    if (name != "." && name != ".." && wanted(name, kind)) {
      entries.push_back({std::string(name), kind});
    }
  }
  ::closedir(stream);
  std::ranges::sort(entries, {}, &Entry::name);
  return entries;
}

std::string read_link(int directory, const std::string& name) {
  std::array<char, PATH_MAX> buffer;
  const ssize_t length = ::readlinkat(directory, name.c_str(), buffer.data(), buffer.size());
  return length > 0 ? std::string(buffer.data(), std::size_t(length)) : std::string();
}

std::string read_start_in(int root, const std::string& path, std::size_t size, Mounts mounts) {
  const Result<Fd> file = open_file_in(root, path, mounts);
  if (!file) {
    return {};
  }
  std::string start(size, '\0');
  const ssize_t count = ::pread(file->get(), start.data(), start.size(), 0);
  start.resize(count > 0 ? std::size_t(count) : 0);
  return start;
}

}  // namespace hf::kernel
