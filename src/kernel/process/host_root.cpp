#include "kernel/process/host_root.h"

#include <cerrno>
#include <cstdlib>

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/files/fd.h"
#include "kernel/files/file.h"

namespace hf::kernel {
namespace {

std::string link_below(int directory, const char* path) {
  std::string target(64, '\0');
  const ssize_t length = ::readlinkat(directory, path, target.data(), target.size());
  target.resize(length > 0 ? std::size_t(length) : 0);
  return target;
}

// The host's /proc shows our pid as the host numbers it.
Result<void> check_host_root(const std::string& directory) {
  const Fd root = TRY(open_directory(AT_FDCWD, directory));
  const std::string pid = link_below(root.get(), "proc/self");
  if (pid.empty()) {
    return fail(std::errc::no_such_file_or_directory,
                directory + " has no /proc: mount the host's root directory there, with what is mounted below it");
  }
  if (pid != std::to_string(::getpid())) {
    return fail(std::errc::operation_not_permitted,
                "the container has a pid namespace of its own: start it with --pid=host (hostPID: true)");
  }
  return {};
}

// NVIDIA's libraries name these parts of the C library. The host's own ones, which are found later, fit the host's C
// library and not the one that this program came with. A library that is loaded already is not searched again.
void load_parts_of_c_library() {
  for (const char* name : {"libdl.so.2", "libpthread.so.0", "librt.so.1", "libm.so.6"}) {
    (void)::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
}

// The mount namespace stays the container's: engines start further commands (kubectl exec) in that of the container's
// first process, and look for their programs there.
Result<void> change_root(const std::string& directory) {
  if (::chroot(directory.c_str()) < 0 || ::chdir("/") < 0) {
    return fail_errno(errno, "make it the root directory (the container must be privileged)");
  }
  return {};
}

// In a cgroup namespace of its own a process sees all cgroup paths relative to its own cgroup, and those of the host's
// first process as "/..".
Result<void> enter_cgroup_namespace() {
  const std::string text = TRY(read_text(AT_FDCWD, "/proc/1/cgroup"));
  if (text.find(":/..") == std::string::npos) {
    return {};
  }
  const Fd first(::open("/proc/1/ns/cgroup", O_RDONLY | O_CLOEXEC));
  if (!first || ::setns(first.get(), CLONE_NEWCGROUP) < 0) {
    return fail_errno(errno, "enter the host's cgroup namespace");
  }
  return {};
}

Result<void> enter(const std::string& directory) {
  TRY(check_host_root(directory));
  load_parts_of_c_library();
  TRY(change_root(directory));
  return enter_cgroup_namespace();
}

}  // namespace

Result<void> enter_host_root(const std::string& directory) {
  const Result<void> entered = enter(directory);
  if (!entered) {
    return fail(entered.error().code,
                kHostRootVariable + ("=" + printable(directory) + ": ") + entered.error().message);
  }
  return {};
}

Result<void> enter_host_root() {
  const char* const value = std::getenv(kHostRootVariable);
  const std::string directory = value == nullptr ? "" : value;
  if (directory.empty()) {
    return {};
  }
  TRY(enter_host_root(directory));
  ::unsetenv(kHostRootVariable);
  return {};
}

}  // namespace hf::kernel
