#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "kernel/files/device_node.h"
#include "kernel/files/file.h"

namespace hf::kernel {
namespace {

constexpr const char* kTemporarySuffix = ".holdfast";

Result<void> make_directory_of(const Host& host, const std::string& path) {
  const std::string below = below_root(path);
  const std::size_t slash = below.rfind('/');
  return slash == std::string::npos ? Result<void>() : make_directories(host.root.get(), below.substr(0, slash));
}

Result<void> rename_to(const Host& host, const std::string& temporary, const std::string& path) {
  if (::renameat(host.root.get(), temporary.c_str(), host.root.get(), below_root(path).c_str()) == 0) {
    return {};
  }
  const int why = errno;
  (void)::unlinkat(host.root.get(), temporary.c_str(), 0);
  return fail_errno(why, "make " + path);
}

bool is_symlink(const Host& host, const std::string& path) {
  struct stat status{};
  return ::fstatat(host.root.get(), below_root(path).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISLNK(status.st_mode);
}

bool exists_on(const Host& host, const std::string& path) {
  struct stat status{};
  return ::fstatat(host.root.get(), below_root(path).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace

Result<void> make_node_on(const Host& host, const NewNode& node) {
  if (exists_on(host, node.path) && !read_node(host, node.path)) {
    return fail(std::errc::file_exists, "make " + node.path + ": something that is not a device node is in its place");
  }
  TRY(make_directory_of(host, node.path));
  const int root = host.root.get();
  const std::string temporary = below_root(node.path) + kTemporarySuffix;
  (void)::unlinkat(root, temporary.c_str(), 0);  // left by a process that was killed
  const mode_t kind = node.device.kind == device::Kind::block ? S_IFBLK : S_IFCHR;
  constexpr mode_t kBits = 0777;  // set regardless of the umask
  // Without permission bits, so that no process can open it until it has its owner.
  if (::mknodat(root, temporary.c_str(), kind, makedev(node.device.major, node.device.minor)) < 0) {
    return fail_errno(errno, "make " + node.path);
  }
  const container::Permissions& wanted = node.permissions;
  if (::fchownat(root, temporary.c_str(), wanted.uid, wanted.gid, AT_SYMLINK_NOFOLLOW) < 0 ||
      ::fchmodat(root, temporary.c_str(), wanted.mode & kBits, 0) < 0) {
    const int why = errno;
    (void)::unlinkat(root, temporary.c_str(), 0);
    return fail_errno(why, "make " + node.path);
  }
  return rename_to(host, temporary, node.path);
}

std::map<std::string, std::string> read_links(const Host& host, const std::string& directory) {
  std::map<std::string, std::string> links;
  for (const std::string& name : list_names(host.root.get(), below_root(directory))) {
    std::array<char, 4096> target;
    const ssize_t length =
        ::readlinkat(host.root.get(), (below_root(directory) + "/" + name).c_str(), target.data(), target.size());
    links.emplace(name, std::string(target.data(), length > 0 ? std::size_t(length) : 0));
  }
  return links;
}

Result<void> make_symlink_on(const Host& host, const std::string& path, const std::string& target) {
  if (exists_on(host, path) && !is_symlink(host, path)) {
    return fail(std::errc::file_exists, "make " + path + ": something that is not a symlink is in its place");
  }
  TRY(make_directory_of(host, path));
  const std::string temporary = below_root(path) + kTemporarySuffix;
  (void)::unlinkat(host.root.get(), temporary.c_str(), 0);
  if (::symlinkat(target.c_str(), host.root.get(), temporary.c_str()) < 0) {
    return fail_errno(errno, "make " + path);
  }
  return rename_to(host, temporary, path);
}

Result<void> remove_symlink_on(const Host& host, const std::string& path) {
  return is_symlink(host, path) ? remove_file(host.root.get(), below_root(path)) : Result<void>();
}

}  // namespace hf::kernel
