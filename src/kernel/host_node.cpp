#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "kernel/device_node.h"
#include "kernel/file.h"

namespace hf::kernel {
namespace {

constexpr const char* kBeside = ".holdfast";  // behind the name, until it is whole

Result<void> make_folder_of(const Host& host, const std::string& path) {
  const std::string below = below_root(path);
  const std::size_t slash = below.rfind('/');
  return slash == std::string::npos ? Result<void>() : make_folders(host.root.get(), below.substr(0, slash));
}

Result<void> put_in_place(const Host& host, const std::string& beside, const std::string& path) {
  if (::renameat(host.root.get(), beside.c_str(), host.root.get(), below_root(path).c_str()) == 0) {
    return {};
  }
  const int why = errno;
  (void)::unlinkat(host.root.get(), beside.c_str(), 0);
  return fail_errno(why, "make " + path);
}

bool is_link(const Host& host, const std::string& path) {
  struct stat status{};
  return ::fstatat(host.root.get(), below_root(path).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISLNK(status.st_mode);
}

bool is_anything(const Host& host, const std::string& path) {
  struct stat status{};
  return ::fstatat(host.root.get(), below_root(path).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace

Result<void> make_node_on(const Host& host, const NewNode& node) {
  if (is_anything(host, node.path) && !read_node(host, node.path)) {
    return fail(std::errc::file_exists, "make " + node.path + ": something that is no node is in its place");
  }
  TRY(make_folder_of(host, node.path));
  const int root = host.root.get();
  const std::string beside = below_root(node.path) + kBeside;
  (void)::unlinkat(root, beside.c_str(), 0);  // of one who was killed
  const mode_t kind = node.device.kind == device::Kind::block ? S_IFBLK : S_IFCHR;
  constexpr mode_t kBits = 0777;  // whatever our umask is
  // Nobody may open it until it has its owner.
  if (::mknodat(root, beside.c_str(), kind, makedev(node.device.major, node.device.minor)) < 0) {
    return fail_errno(errno, "make " + node.path);
  }
  const container::Permissions& wanted = node.permissions;
  if (::fchownat(root, beside.c_str(), wanted.uid, wanted.gid, AT_SYMLINK_NOFOLLOW) < 0 ||
      ::fchmodat(root, beside.c_str(), wanted.mode & kBits, 0) < 0) {
    const int why = errno;
    (void)::unlinkat(root, beside.c_str(), 0);
    return fail_errno(why, "make " + node.path);
  }
  return put_in_place(host, beside, node.path);
}

std::map<std::string, std::string> read_links(const Host& host, const std::string& folder) {
  std::map<std::string, std::string> links;
  for (const std::string& name : list_names(host.root.get(), below_root(folder))) {
    std::array<char, 4096> target;
    const ssize_t length =
        ::readlinkat(host.root.get(), (below_root(folder) + "/" + name).c_str(), target.data(), target.size());
    links.emplace(name, std::string(target.data(), length > 0 ? std::size_t(length) : 0));
  }
  return links;
}

Result<void> make_link_on(const Host& host, const std::string& path, const std::string& target) {
  if (is_anything(host, path) && !is_link(host, path)) {
    return fail(std::errc::file_exists, "make " + path + ": something that is no link is in its place");
  }
  TRY(make_folder_of(host, path));
  const std::string beside = below_root(path) + kBeside;
  (void)::unlinkat(host.root.get(), beside.c_str(), 0);
  if (::symlinkat(target.c_str(), host.root.get(), beside.c_str()) < 0) {
    return fail_errno(errno, "make " + path);
  }
  return put_in_place(host, beside, path);
}

Result<void> remove_link_on(const Host& host, const std::string& path) {
  return is_link(host, path) ? remove_file(host.root.get(), below_root(path)) : Result<void>();
}

}  // namespace hf::kernel
