#include "kernel/process/privileges.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <vector>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hf::kernel {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "name the audit architecture of this machine"
#endif

using Sets = std::array<__user_cap_data_struct, 2>;

// System calls beyond file access. execve(2), which takes a path, is among them; execveat(2) is handled separately.
constexpr auto kRefused = std::to_array<std::uint32_t>({
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_move_mount,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_unshare,
    SYS_setns,
    SYS_clone,
    SYS_clone3,
    SYS_execve,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_pidfd_open,
    SYS_pidfd_send_signal,
    SYS_kill,
    SYS_tkill,
    SYS_tgkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_fanotify_init,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_syslog,
    SYS_personality,
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
#ifdef SYS_mount_setattr
    SYS_mount_setattr,
#endif
#ifdef SYS_pidfd_getfd
    SYS_pidfd_getfd,
#endif
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
#ifdef SYS_iopl
    SYS_iopl,
    SYS_ioperm,
#endif
});

constexpr auto kMakesNodes = std::to_array<std::uint32_t>({
    SYS_mknodat,
#ifdef SYS_mknod
    SYS_mknod,
#endif
});

class Filter {
 public:
  Filter() {
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
    run_if(Comparison::unequal, kArchitecture, {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS});
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    constexpr std::uint32_t kFirstX32Number = 0x40000000;  // Kernel: the system calls of x32 are numbered from here
    code_.push_back({BPF_JMP | BPF_JGE | BPF_K, 0, 1, kFirstX32Number});
    refuse();
#endif
  }

  void refuse(std::uint32_t number) { run_if(Comparison::equal, number, kRefusal); }

  // Allows execveat(2) only with AT_EMPTY_PATH in its fifth argument.
  void allow_only_by_descriptor(std::uint32_t number) {
    constexpr std::uint32_t kFlags = offsetof(seccomp_data, args) + 4 * sizeof(std::uint64_t);
    code_.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0, 4, number});
    add(BPF_LD | BPF_W | BPF_ABS, kFlags);
    code_.push_back({BPF_JMP | BPF_JSET | BPF_K, 1, 0, AT_EMPTY_PATH});
    refuse();
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }

  Result<void> install() {
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0) {
      return fail_errno(errno, "restrict system calls");
    }
    return {};
  }

 private:
  enum class Comparison : std::uint8_t { equal, unequal };
  static constexpr sock_filter kRefusal = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM};

  void add(std::uint16_t operation, std::uint32_t value) { code_.push_back({operation, 0, 0, value}); }
  void refuse() { code_.push_back(kRefusal); }
  void run_if(Comparison comparison, std::uint32_t value, const sock_filter& then) {
    const bool on_equal = comparison == Comparison::equal;
    code_.push_back({BPF_JMP | BPF_JEQ | BPF_K, std::uint8_t(on_equal ? 0 : 1), std::uint8_t(on_equal ? 1 : 0), value});
    code_.push_back(then);
  }

  std::vector<sock_filter> code_;
};

}  // namespace

Result<Capabilities> read_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  Sets sets{};
  if (::syscall(SYS_capget, &header, sets.data()) < 0) {
    return fail_errno(errno, "read our capabilities");
  }
  return sets[0].permitted | std::uint64_t(sets[1].permitted) << 32U;
}

Result<void> limit_capabilities(Capabilities kept) {
  const Capabilities permitted = TRY(read_capabilities());
  // The bounding set comes first: dropping from it needs CAP_SETPCAP, which may be among the dropped capabilities.
  // Where CAP_SETPCAP is missing, no_new_privs keeps a program run by root from regaining what was dropped.
  for (unsigned number = 0; ::prctl(PR_CAPBSET_READ, number) >= 0; ++number) {
    if ((kept & capability(number)) == 0) {
      (void)::prctl(PR_CAPBSET_DROP, number);
    }
  }
  (void)::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  const auto low = std::uint32_t(kept & permitted);
  const auto high = std::uint32_t((kept & permitted) >> 32U);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  Sets sets = {{{low, low, 0}, {high, high, 0}}};
  if (::syscall(SYS_capset, &header, sets.data()) < 0) {
    return fail_errno(errno, "give up capabilities");
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
    return fail_errno(errno, "give up new privileges");
  }
  return {};
}

Result<void> restrict_system_calls(SystemCalls allowed) {
  Filter filter;
  for (const std::uint32_t number : kRefused) {
    filter.refuse(number);
  }
  for (const std::uint32_t number : kMakesNodes) {
    if (!allowed.may_make_nodes) {
      filter.refuse(number);
    }
  }
  if (allowed.may_execute_opened) {
    filter.allow_only_by_descriptor(SYS_execveat);
  } else {
    filter.refuse(SYS_execveat);
  }
  return filter.install();
}

}  // namespace hf::kernel
