#include "kernel/files/private_tmpfs.h"

#include <cerrno>

#include <sys/mount.h>

namespace hf::kernel {

Result<Fd> make_private_tmpfs(const char* size, DeviceNodes nodes) {
  const Fd context(::fsopen("tmpfs", FSOPEN_CLOEXEC));
  if (!context || ::fsconfig(context.get(), FSCONFIG_SET_STRING, "size", size, 0) < 0 ||
      ::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0) {
    return fail_errno(errno, "make a tmpfs");
  }
  const unsigned attributes =
      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | (nodes == DeviceNodes::usable ? 0U : unsigned(MOUNT_ATTR_NODEV));
  Fd mount(::fsmount(context.get(), FSMOUNT_CLOEXEC, attributes));
  if (!mount) {
    return fail_errno(errno, "make a tmpfs");
  }
  return mount;
}

}  // namespace hf::kernel
