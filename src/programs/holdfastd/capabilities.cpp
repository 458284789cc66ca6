#include "programs/holdfastd/capabilities.h"

#include <array>

#include <linux/capability.h>

#include "kernel/process/privileges.h"

namespace hf::programs {
namespace {

struct Needed {
  unsigned number;
  const char* name;
};

// SYS_ADMIN: loading programs and the tracer, opening programs of others, fanotify, mount namespaces; NET_ADMIN:
// attaching and listing device programs on kernels before 6.9. SYS_PTRACE, DAC_*, SYS_CHROOT, SETUID, SETGID: probing
// from inside a container, as its user. MKNOD, CHOWN, FOWNER: creating nodes. KILL: ending a probe that hangs.
constexpr auto kNeeded = std::to_array<Needed>({{CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
                                                {CAP_NET_ADMIN, "CAP_NET_ADMIN"},
                                                {CAP_SYS_PTRACE, "CAP_SYS_PTRACE"},
                                                {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
                                                {CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"},
                                                {CAP_SYS_CHROOT, "CAP_SYS_CHROOT"},
                                                {CAP_SETUID, "CAP_SETUID"},
                                                {CAP_SETGID, "CAP_SETGID"},
                                                {CAP_MKNOD, "CAP_MKNOD"},
                                                {CAP_CHOWN, "CAP_CHOWN"},
                                                {CAP_FOWNER, "CAP_FOWNER"},
                                                {CAP_KILL, "CAP_KILL"}});

// Kept if present. SYS_NICE and SYS_RESOURCE: scheduling and limits that the systemd unit sets. SYSLOG: the kernel's
// log, and the names of functions that programs call.
constexpr kernel::Capabilities kUseful =
    kernel::capability(CAP_SYS_NICE) | kernel::capability(CAP_SYS_RESOURCE) | kernel::capability(CAP_SYSLOG);

}  // namespace

Result<std::vector<std::string>> keep_needed_capabilities() {
  const kernel::Capabilities permitted = TRY(kernel::read_capabilities());
  kernel::Capabilities wanted = kUseful;
  std::vector<std::string> missing;
  for (const Needed& needed : kNeeded) {
    wanted |= kernel::capability(needed.number);
    if ((permitted & kernel::capability(needed.number)) == 0) {
      missing.emplace_back(needed.name);
    }
  }
  TRY(kernel::limit_capabilities(wanted));
  return missing;
}

}  // namespace hf::programs
