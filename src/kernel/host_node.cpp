#include "kernel/host_node.h"

#include <cerrno>
#include <chrono>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/command.h"
#include "kernel/fd.h"

namespace hf::kernel {
namespace {

constexpr std::chrono::seconds kModuleLimit{20};

}  // namespace

Result<void> make_host_node(const Host& host, const NewNode& node) {
  const std::string path = below_root(node.path);
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    (void)::mkdirat(host.root.get(), path.substr(0, slash).c_str(), 0755);
  }
  struct stat status{};
  const bool is_there = ::fstatat(host.root.get(), path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (is_there && !S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode)) {
    return fail(std::errc::file_exists, "make " + node.path + ": something else is in its place");
  }
  const mode_t kind = node.device.kind == device::Kind::block ? S_IFBLK : S_IFCHR;
  const dev_t numbers = ::makedev(node.device.major, node.device.minor);
  if (is_there && (status.st_mode & S_IFMT) == kind && status.st_rdev == numbers) {
    return {};
  }
  const std::string beside = path + "." + std::to_string(::gettid());
  (void)::unlinkat(host.root.get(), beside.c_str(), 0);
  const bool is_made = ::mknodat(host.root.get(), beside.c_str(), kind | mode_t(node.permissions.mode), numbers) == 0 &&
                       ::fchownat(host.root.get(), beside.c_str(), node.permissions.uid, node.permissions.gid,
                                  AT_SYMLINK_NOFOLLOW) == 0 &&
                       ::fchmodat(host.root.get(), beside.c_str(), mode_t(node.permissions.mode), 0) == 0 &&
                       ::renameat(host.root.get(), beside.c_str(), host.root.get(), path.c_str()) == 0;
  if (is_made) {
    return {};
  }
  const int why = errno;
  (void)::unlinkat(host.root.get(), beside.c_str(), 0);
  return fail_errno(why, "make " + node.path);
}

Result<void> load_module(const std::string& name) {
  for (const char* program : {"/sbin/modprobe", "/usr/sbin/modprobe"}) {
    if (::access(program, X_OK) == 0) {
      Command command;
      command.words = {program, "-q", name};
      const Result<std::string> done = run(command, kModuleLimit);
      return done ? Result<void>() : fail(done.error().code, "modprobe " + name + ": " + done.error().message);
    }
  }
  return fail(std::errc::no_such_file_or_directory, "modprobe " + name + ": there is no modprobe here");
}

}  // namespace hf::kernel
