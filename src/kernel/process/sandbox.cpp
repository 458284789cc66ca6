#include "kernel/process/sandbox.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include <elf.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/text.h"
#include "core/container/cgroup/mount.h"
#include "kernel/files/container_fs.h"
#include "kernel/files/file.h"
#include "kernel/files/private_tmpfs.h"
#include "kernel/process/arguments.h"
#include "kernel/process/privileges.h"
#include "kernel/process/subprocess.h"

namespace hf::kernel {
namespace {

constexpr const char* kResultName = "result";
constexpr unsigned long kReadOnly = MS_RDONLY | MS_NOEXEC | MS_NOSUID | MS_NODEV;

enum class Writing : std::uint8_t { allowed, refused };

// Magic links of procfs lead out of the root; the others are not needed.
bool must_be_unmounted(const std::string& type) {
  constexpr auto kTypes =
      std::to_array<std::string_view>({"proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "bpf",
                                       "configfs", "binfmt_misc", "autofs", "pstore", "efivarfs"});
  return std::ranges::find(kTypes, type) != kTypes.end();
}

// The mounts below the current directory. Paths of mountinfo contain no symlinks.
Result<std::vector<container::Mount>> mounts_below_here() {
  std::array<char, PATH_MAX> here{};
  if (::getcwd(here.data(), here.size()) == nullptr || here[0] != '/') {
    return fail_errno(errno, "find the path of the root file system");
  }
  const std::string prefix = std::string_view(here.data()) == "/" ? "/" : std::string(here.data()) + "/";
  std::vector<container::Mount> mounts =
      container::parse_mountinfo(TRY(read_text(AT_FDCWD, "/proc/thread-self/mountinfo")));
  std::erase_if(mounts, [&prefix](const container::Mount& mount) { return !mount.point.starts_with(prefix); });
  return mounts;
}

// An unmount may uncover another mount, so this is repeated until none is left.
Result<void> unmount_kernel_file_systems() {
  constexpr int kMostRounds = 32;
  for (int round = 0; round < kMostRounds; ++round) {
    std::vector<container::Mount> mounts = TRY(mounts_below_here());
    std::erase_if(mounts, [](const container::Mount& mount) { return !must_be_unmounted(mount.type); });
    if (mounts.empty()) {
      return {};
    }
    for (const container::Mount& mount : mounts) {
      (void)::umount2(mount.point.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    }
  }
  return fail(std::errc::device_or_resource_busy, "unmount procfs and sysfs in the root file system");
}

Result<void> prepare_mounts(Writing writing) {
  TRY(unmount_kernel_file_systems());
  const std::vector<container::Mount> mounts = TRY(mounts_below_here());
  for (const container::Mount& mount : mounts) {
    if (writing == Writing::refused &&
        ::mount(nullptr, mount.point.c_str(), nullptr, MS_REMOUNT | MS_BIND | kReadOnly, nullptr) < 0 &&
        errno != EINVAL && errno != ENOENT) {
      return fail_errno(errno, "make " + mount.point + " read-only");
    }
  }
  return {};
}

Result<void> refuse_if_mounted(const char* path) {
  struct statfs system{};
  const bool is_there = ::statfs(path, &system) == 0;
  if (is_there && (system.f_type == PROC_SUPER_MAGIC || system.f_type == SYSFS_MAGIC)) {
    return fail(std::errc::operation_not_permitted, std::string("unmount ") + path + ": it is still mounted");
  }
  return {};
}

// Runs in the child. The directory becomes "/" of a private mount namespace.
Result<void> enter_root(int root, Writing writing) {
  // chdir comes before the namespace is copied: the current directory then refers to the copy, a descriptor does not.
  if (::fchdir(root) < 0 || ::unshare(CLONE_NEWNS) < 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0) {
    return fail_errno(errno, "make a mount namespace");
  }
  TRY(prepare_mounts(writing));
  const Fd tree(::open_tree(AT_FDCWD, ".", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
  if (!tree || ::move_mount(tree.get(), "", AT_FDCWD, ".", MOVE_MOUNT_F_EMPTY_PATH) < 0 || ::fchdir(tree.get()) < 0 ||
      ::syscall(SYS_pivot_root, ".", ".") < 0 || ::umount2(".", MNT_DETACH) < 0 || ::chdir("/") < 0) {
    return fail_errno(errno, "enter the root file system");
  }
  if (writing == Writing::refused && ::mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | kReadOnly, nullptr) < 0) {
    return fail_errno(errno, "make the root file system read-only");
  }
  TRY(refuse_if_mounted("/proc"));
  return refuse_if_mounted("/sys");
}

// CAP_DAC_OVERRIDE stays, because files and directories of an image may be unreadable even for their owner.
Result<void> give_up_privileges(SystemCalls allowed) {
  TRY(limit_capabilities(capability(CAP_DAC_OVERRIDE)));
  return restrict_system_calls(allowed);
}

// Descriptors inherited from the parent, or from the runtime that started it, may lead out of the root.
void close_all_but(int kept) {
  constexpr unsigned kFirst = 3;
  if (unsigned(kept) > kFirst) {
    ::close_range(kFirst, unsigned(kept) - 1, 0);
  }
  ::close_range(std::max(kFirst, unsigned(kept) + 1), ~0U, 0);
}

Result<std::string> work_inside(int root, const std::function<Result<std::string>()>& work, int output) {
  TRY(enter_root(root, Writing::allowed));
  close_all_but(output);
  TRY(give_up_privileges({}));
  return work();
}

// Mounts the result directory over a directory that is not needed.
Result<std::string> mount_result_directory(const Fd& result) {
  for (const char* path : {"/proc", "/sys", "/tmp", "/run", "/mnt", "/dev"}) {
    const Fd place(::open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (place &&
        ::move_mount(result.get(), "", place.get(), "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0) {
      return std::string(path);
    }
  }
  return fail(std::errc::no_such_file_or_directory, "the root file system has none of /proc, /sys, /tmp, /run");
}

// Does not return on success. The parent waits as long as the program holds `output` open.
Result<std::string> become_program(int root, const SandboxedProgram& program, const Fd& result, int output) {
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));  // the host's
  if (::dup2(null.get(), STDIN_FILENO) < 0 || ::dup2(null.get(), STDERR_FILENO) < 0 ||
      ::dup2(output, STDOUT_FILENO) < 0) {
    return fail_errno(errno, "open /dev/null");
  }
  TRY(enter_root(root, Writing::refused));
  const Arguments arguments(program.arguments(TRY(mount_result_directory(result)) + "/" + kResultName));
  TRY(give_up_privileges({.may_execute_opened = true}));
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  std::array<char*, 1> environment = {nullptr};
  constexpr rlimit kMostMemory{rlim_t(1) << 30U, rlim_t(1) << 30U};  // a file of the image may be endless
  if (::setrlimit(RLIMIT_AS, &kMostMemory) < 0) {
    return fail_errno(errno, "limit the program's memory");
  }
  ::syscall(SYS_execveat, program.program.get(), "", arguments.get(), environment.data(), AT_EMPTY_PATH);
  return fail_errno(errno, "start the program");
}

}  // namespace

Result<std::string> run_in_sandbox(int root, const std::function<Result<std::string>()>& work,
                                   std::chrono::milliseconds limit) {
  return run_result_in_subprocess([&](int output) { return work_inside(root, work, output); }, limit);
}

Result<std::string> run_program_in_sandbox(int root, const SandboxedProgram& program, std::chrono::milliseconds limit) {
  if (!is_static_program(program.program)) {
    return fail(std::errc::executable_format_error, "it is not statically linked: its loader would be the image's own");
  }
  // It is mounted in the child's mount namespace only, and stays readable through the descriptor.
  const Fd result = TRY(make_private_tmpfs("64m", DeviceNodes::blocked));
  TRY(run_result_in_subprocess([&](int output) { return become_program(root, program, result, output); }, limit));
  constexpr std::size_t kMost = std::size_t(64) << 20U;
  return read_start(result.get(), kResultName, kMost);
}

bool is_static_program(const Fd& file) {
  Elf64_Ehdr head{};
  constexpr std::uint16_t kMostParts = 256;
  if (::pread(file.get(), &head, sizeof(head), 0) != ssize_t(sizeof(head)) ||
      std::string_view(reinterpret_cast<const char*>(head.e_ident), SELFMAG) != std::string_view(ELFMAG, SELFMAG) ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum == 0 ||
      head.e_phnum > kMostParts) {
    return false;
  }
  for (std::uint16_t i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr part{};
    const off_t offset = off_t(head.e_phoff) + off_t(i) * off_t(sizeof(part));
    if (::pread(file.get(), &part, sizeof(part), offset) != ssize_t(sizeof(part)) || part.p_type == PT_INTERP) {
      return false;
    }
  }
  return true;
}

}  // namespace hf::kernel
