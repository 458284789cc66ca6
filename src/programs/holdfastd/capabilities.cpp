#include "programs/holdfastd/capabilities.h"

#include <array>
#include <cerrno>
#include <cstdint>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

namespace hf::programs {
namespace {

struct Needed {
  unsigned number;
  const char* name;
};

// BPF, PERFMON, NET_ADMIN: loading device programs and the tracer. SYS_ADMIN: opening others' programs, fanotify, mount
// namespaces. SYS_PTRACE, DAC_*, SYS_CHROOT, SETUID, SETGID: looking from a container's seat, as its user. MKNOD,
// CHOWN, FOWNER: making nodes anew. KILL: ending a look that hangs. SYS_NICE: coming first. SYS_RESOURCE: descriptors.
// SYSLOG: the kernel's log, and addresses of its functions.
constexpr std::array<Needed, 17> kNeeded = {{{CAP_BPF, "CAP_BPF"},
                                             {CAP_PERFMON, "CAP_PERFMON"},
                                             {CAP_NET_ADMIN, "CAP_NET_ADMIN"},
                                             {CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
                                             {CAP_SYS_PTRACE, "CAP_SYS_PTRACE"},
                                             {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
                                             {CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"},
                                             {CAP_SYS_CHROOT, "CAP_SYS_CHROOT"},
                                             {CAP_SETUID, "CAP_SETUID"},
                                             {CAP_SETGID, "CAP_SETGID"},
                                             {CAP_MKNOD, "CAP_MKNOD"},
                                             {CAP_CHOWN, "CAP_CHOWN"},
                                             {CAP_FOWNER, "CAP_FOWNER"},
                                             {CAP_KILL, "CAP_KILL"},
                                             {CAP_SYS_NICE, "CAP_SYS_NICE"},
                                             {CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE"},
                                             {CAP_SYSLOG, "CAP_SYSLOG"}}};

using Sets = std::array<__user_cap_data_struct, 2>;

std::uint64_t permitted_of(const Sets& sets) { return sets[0].permitted | std::uint64_t(sets[1].permitted) << 32U; }

}  // namespace

std::vector<std::string> needed_capabilities() {
  std::vector<std::string> names;
  names.reserve(kNeeded.size());
  for (const Needed& needed : kNeeded) {
    names.emplace_back(needed.name);
  }
  return names;
}

Result<std::vector<std::string>> keep_needed_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  Sets sets{};
  if (::syscall(SYS_capget, &header, sets.data()) < 0) {
    return fail_errno(errno, "read our capabilities");
  }
  std::uint64_t wanted = 0;
  std::vector<std::string> missing;
  for (const Needed& needed : kNeeded) {
    wanted |= std::uint64_t(1) << needed.number;
    if ((permitted_of(sets) >> needed.number & 1U) == 0) {
      missing.emplace_back(needed.name);
    }
  }
  // The bounding set first: dropping from it needs CAP_SETPCAP, which is among those that go.
  for (unsigned number = 0; ::prctl(PR_CAPBSET_READ, number) >= 0; ++number) {
    if ((wanted >> number & 1U) == 0) {
      (void)::prctl(PR_CAPBSET_DROP, number);
    }
  }
  const std::uint64_t kept = wanted & permitted_of(sets);
  const auto low = std::uint32_t(kept);
  const auto high = std::uint32_t(kept >> 32U);
  sets = {{{low, low, 0}, {high, high, 0}}};
  if (::syscall(SYS_capset, &header, sets.data()) < 0) {
    return fail_errno(errno, "give up capabilities");
  }
  (void)::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return missing;
}

}  // namespace hf::programs
