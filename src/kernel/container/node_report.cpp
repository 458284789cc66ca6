#include "kernel/container/node_report.h"

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace hf::kernel {
namespace {

// O_PATH reaches neither the driver nor the device cgroup.
int open_path(int root, const char* path, int flags, std::uint64_t resolve = 0) {
  open_how how{};
  how.flags = std::uint64_t(O_PATH | O_CLOEXEC | flags);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve;
  return int(::syscall(SYS_openat2, root, path, &how, sizeof(how)));
}

// A path without symlinks.
bool may_be_searched_by_all(int root, const char* path) {
  constexpr mode_t kSearch = 0111;
  std::array<char, PATH_MAX> directory;
  const std::size_t length = std::strlen(path);
  if (length >= directory.size()) {
    return false;
  }
  std::memcpy(directory.data(), path, length);
  for (std::size_t end = length; end-- > 0;) {
    if (path[end] != '/') {
      continue;
    }
    directory[end] = '\0';
    const int opened = open_path(root, end == 0 ? "/" : directory.data(), O_DIRECTORY, RESOLVE_NO_SYMLINKS);
    struct stat status{};
    const bool is_open = opened >= 0 && ::fstat(opened, &status) == 0 && (status.st_mode & kSearch) == kSearch;
    ::close(opened);
    if (!is_open) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool NodeReport::is_device() const { return S_ISCHR(mode) || S_ISBLK(mode); }

NodeReport look_up_node(int root, const char* path) {
  NodeReport report;
  struct stat status{};
  int node = open_path(root, path, 0, RESOLVE_NO_SYMLINKS);
  const bool is_plain = node >= 0;
  if (node < 0 && errno == ELOOP) {
    node = open_path(root, path, 0);
  }
  if (node < 0) {
    report.lookup_error = errno;
    const int link = report.lookup_error == ENOENT ? open_path(root, path, O_NOFOLLOW) : -1;
    if (link >= 0 && ::fstat(link, &status) == 0) {  // a dangling symlink exists at this path
      report.lookup_error = 0;
      report.mode = status.st_mode;
    }
    ::close(link);
    return report;
  }
  struct statvfs mount{};
  if (::fstat(node, &status) < 0 || ::fstatvfs(node, &mount) < 0) {
    report.lookup_error = errno;
  }
  ::close(node);
  report.mode = status.st_mode;
  report.major = ::major(status.st_rdev);
  report.minor = ::minor(status.st_rdev);
  report.uid = status.st_uid;
  report.gid = status.st_gid;
  report.nodev = (mount.f_flag & ST_NODEV) != 0 ? 1 : 0;
  report.enclosed = is_plain && may_be_searched_by_all(root, path) ? 0 : 1;
  return report;
}

container::NodeView view_of(const std::string& path, const NodeReport& report) {
  container::NodeView seen;
  seen.path = path;
  seen.lookup_error = report.lookup_error;
  if (report.is_device()) {
    const device::Kind kind = S_ISBLK(report.mode) ? device::Kind::block : device::Kind::character;
    seen.device = device::Device{kind, report.major, report.minor};
  }
  seen.mode = report.mode & 07777U;
  seen.uid = report.uid;
  seen.gid = report.gid;
  seen.is_on_nodev_mount = report.nodev != 0;
  seen.is_enclosed = report.enclosed != 0;
  const auto answer = [](int error) { return error == NodeReport::kNotAsked ? std::nullopt : std::optional(error); };
  seen.access = answer(report.access);
  seen.open = answer(report.open);
  return seen;
}

}  // namespace hf::kernel
